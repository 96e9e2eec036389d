import { describe, expect, test } from 'vitest'
import { fromHex } from '../src/net/bytes'
import { ChunkCache, hashOf, type CacheEntry, type CacheStorage } from '../src/net/chunk-cache'

/** Storage that lasts as long as the test. */
class MemoryStorage implements CacheStorage {
  readonly data = new Map<string, Uint8Array<ArrayBuffer>>()
  readonly entries = new Map<string, CacheEntry>()

  list() {
    return Promise.resolve([...this.entries.values()])
  }

  read(hash: string) {
    return Promise.resolve(this.data.get(hash))
  }

  write(data: Map<string, Uint8Array<ArrayBuffer>>, entries: CacheEntry[], removed: string[]) {
    for (const hash of removed) {
      this.data.delete(hash)
      this.entries.delete(hash)
    }
    for (const [hash, bytes] of data) this.data.set(hash, bytes)
    for (const entry of entries) this.entries.set(entry.hash, entry)
    return Promise.resolve()
  }
}

const chunk = (fill: number, size = 100) => new Uint8Array(size).fill(fill)
const hash = (data: Uint8Array) => fromHex(hashOf(data), 16)!

describe('the cache of chunks', () => {
  test('hashes as the server does', () => {
    // printf 'deflated chunk!' | sha256sum
    expect(hashOf(new TextEncoder().encode('deflated chunk!'))).toBe('359415fa95720f5033565fb522d99236')
  })

  test('has what it was given, also after a reload', async () => {
    const storage = new MemoryStorage()
    const cache = new ChunkCache(storage)
    expect(await cache.get(hash(chunk(1)))).toBeNull()
    await cache.put(chunk(1))
    expect(await cache.get(hash(chunk(1)))).toEqual(chunk(1)) // not stored yet
    await cache.store()
    expect(await cache.get(hash(chunk(1)))).toEqual(chunk(1))
    expect(await new ChunkCache(storage).get(hash(chunk(1)))).toEqual(chunk(1))
  })

  test('drops what is corrupt, and takes it again', async () => {
    const storage = new MemoryStorage()
    const cache = new ChunkCache(storage)
    await cache.put(chunk(1))
    await cache.store()
    storage.data.set(hashOf(chunk(1)), chunk(2))
    expect(await cache.get(hash(chunk(1)))).toBeNull()
    await cache.store()
    expect(storage.data.size + storage.entries.size).toBe(0)
    await cache.put(chunk(1))
    await cache.store()
    expect(await cache.get(hash(chunk(1)))).toEqual(chunk(1))
  })

  test('drops what was used longest ago when it is full', async () => {
    const storage = new MemoryStorage()
    const cache = new ChunkCache(storage, 250)
    await cache.put(chunk(1))
    await cache.put(chunk(2))
    await cache.get(hash(chunk(1)))
    await cache.put(chunk(3))
    await cache.store()
    expect([...storage.data.keys()].sort()).toEqual([hashOf(chunk(1)), hashOf(chunk(3))].sort())
    await cache.put(chunk(4, 300)) // more than fits
    await cache.store()
    expect(storage.data.size).toBe(0)
  })

  test('holds its limit over reloads, by the order of use', async () => {
    const storage = new MemoryStorage()
    for (const [fill, used] of [
      [1, 20],
      [2, 10],
    ] as const) {
      storage.data.set(hashOf(chunk(fill)), chunk(fill))
      storage.entries.set(hashOf(chunk(fill)), { hash: hashOf(chunk(fill)), size: 100, used })
    }
    const cache = new ChunkCache(storage, 250)
    await cache.put(chunk(3))
    await cache.store()
    expect([...storage.data.keys()].sort()).toEqual([hashOf(chunk(1)), hashOf(chunk(3))].sort())
  })

  test('does without storage', async () => {
    const broken: CacheStorage = {
      list: () => Promise.reject(new Error('blocked')),
      read: () => Promise.reject(new Error('blocked')),
      write: () => Promise.reject(new Error('blocked')),
    }
    const cache = new ChunkCache(broken)
    await cache.put(chunk(1))
    await cache.store()
    expect(await cache.get(hash(chunk(1)))).toBeNull()
  })
})
