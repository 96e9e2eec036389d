import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { loadIdentity } from '../src/net/identity'

/** What the browser stores, and why it does not. */
let items: Map<string, string>
let blocked: Error | null
let full: Error | null

beforeEach(() => {
  items = new Map()
  blocked = full = null
  vi.resetModules()
  Object.defineProperty(globalThis, 'localStorage', {
    configurable: true,
    get() {
      if (blocked) throw blocked
      return {
        getItem: (key: string) => items.get(key) ?? null,
        setItem: (key: string, value: string) => {
          if (full) throw full
          items.set(key, value)
        },
      }
    },
  })
})

afterEach(() => {
  Reflect.deleteProperty(globalThis, 'localStorage')
})

const open = async () => (await import('../src/settings/storage')).storage

test('what is written is stored in the browser', async () => {
  const storage = await open()
  storage.setItem('a', '1')
  expect([items.get('a'), storage.getItem('a'), storage.getItem('b'), storage.lasts]).toEqual(['1', '1', null, true])
})

test('without the storage of the browser, a key lasts as long as the page', async () => {
  blocked = new DOMException('denied', 'SecurityError')
  const storage = await open()
  expect([storage.getItem('a'), storage.lasts]).toEqual([null, true]) // nothing is lost yet
  const { key } = loadIdentity(storage)
  expect([loadIdentity(storage).key, storage.lasts]).toEqual([key, false])
})

test('when the storage is full, the newest value counts, and is stored once there is room', async () => {
  const storage = await open()
  storage.setItem('a', 'old')
  full = new DOMException('full', 'QuotaExceededError')
  storage.setItem('a', 'new')
  expect([storage.getItem('a'), items.get('a'), storage.lasts]).toEqual(['new', 'old', false])
  full = null
  storage.setItem('a', 'newest')
  expect([storage.getItem('a'), items.get('a'), storage.lasts]).toEqual(['newest', 'newest', true])
})
