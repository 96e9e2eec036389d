import { afterEach, expect, test, vi } from 'vitest'
import { Store } from '../src/game/store'
import { keepWorldTextures } from '../src/game/world-textures'
import { dropPack, keepPack } from '../src/render/texture-pack'
import { defaults } from '../src/settings/settings'

vi.mock('../src/render/texture-pack') // there is no IndexedDB here

afterEach(() => {
  vi.unstubAllGlobals()
  vi.clearAllMocks()
})

test('the textures of the world are kept if they are what the gateway has named', async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const fetched = vi.fn(() => Promise.resolve(new Response('abc')))
  vi.stubGlobal('fetch', fetched)
  const store = new Store(defaults(false), { setItem: vi.fn() })
  const toast = vi.fn()
  const keep = (hash: string) => keepWorldTextures(hash, 'wss://node.example/world/ws', store, { toast })
  await keep('A'.repeat(43))
  expect([store.settings.worldPack, toast.mock.calls.length]).toEqual(['', 0])
  const hash = 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0' // FIPS 180-2, B.1
  await keep(hash)
  expect(fetched).toHaveBeenLastCalledWith(new URL(`https://node.example/world/textures/${hash}`))
  expect(keepPack).toHaveBeenCalledExactlyOnceWith(new TextEncoder().encode('abc'), 'worldPack')
  expect([store.settings.worldPack, toast.mock.calls.length]).toEqual([hash, 1])
  await keep('')
  expect(dropPack).toHaveBeenCalledWith('worldPack')
  expect(store.settings.worldPack).toBe('')
})
