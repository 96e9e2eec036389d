// Chunks that this browser has received before, by the hash of their data. The server sends a hash first, and the data only if it
// is not here. The total size is limited: the chunks that were used longest ago are dropped first.

import { sha256 } from '@noble/hashes/sha2.js'
import { toHex } from './bytes'

const HASH_BYTES = 16
const MAX_BYTES = 24 << 20
/** The time after which what has changed is stored. */
const STORE_MS = 500

export interface CacheEntry {
  hash: string
  size: number
  /** When it was last used: Unix time in ms. */
  used: number
}

/** What the cache is stored in. */
export interface CacheStorage {
  list(): Promise<CacheEntry[]>
  read(hash: string): Promise<Uint8Array<ArrayBuffer> | undefined>
  /** Stores new data, the entries of what was used or stored, and removes others. */
  write(data: Map<string, Uint8Array<ArrayBuffer>>, entries: CacheEntry[], removed: string[]): Promise<void>
}

export class ChunkCache {
  private readonly entries: Promise<Map<string, CacheEntry>> // the longest unused first
  private bytes = 0
  private readonly unstored = new Map<string, Uint8Array<ArrayBuffer>>()
  private readonly touched = new Set<string>()
  private readonly removed = new Set<string>()
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly storage: CacheStorage,
    private readonly maxBytes = MAX_BYTES,
  ) {
    this.entries = storage.list().then(
      (list) => {
        const entries = new Map(list.sort((a, b) => a.used - b.used).map((entry) => [entry.hash, entry]))
        for (const { size } of entries.values()) this.bytes += size
        return entries
      },
      () => new Map<string, CacheEntry>(), // this browser stores nothing
    )
  }

  /** Returns the data of a hash, or null if it is not here or is corrupt. */
  async get(hash: Uint8Array): Promise<Uint8Array<ArrayBuffer> | null> {
    const name = toHex(hash)
    const entries = await this.entries
    const entry = entries.get(name)
    if (!entry) return null
    const data = this.unstored.get(name) ?? (await this.storage.read(name).catch(() => undefined))
    if (!data || hashOf(data) !== name) {
      this.remove(entries, name)
      return null
    }
    this.use(entries, { ...entry, used: Date.now() })
    return data
  }

  /** Keeps the data of a chunk. */
  async put(data: Uint8Array<ArrayBuffer>): Promise<void> {
    const entries = await this.entries
    const hash = hashOf(data)
    if (!entries.has(hash)) {
      this.bytes += data.length
      this.unstored.set(hash, data)
      this.removed.delete(hash)
    }
    this.use(entries, { hash, size: data.length, used: Date.now() })
    for (const oldest of entries.keys()) {
      if (this.bytes <= this.maxBytes) break
      this.remove(entries, oldest)
    }
  }

  /** Stores what has changed since it was last stored. */
  async store(): Promise<void> {
    clearTimeout(this.timer)
    this.timer = undefined
    const entries = await this.entries
    const touched = [...this.touched].flatMap((hash) => entries.get(hash) ?? [])
    const data = new Map(this.unstored)
    const removed = [...this.removed]
    this.touched.clear()
    this.removed.clear()
    try {
      await this.storage.write(data, touched, removed)
    } catch (reason) {
      console.warn('storing chunks failed', reason)
    }
    for (const hash of data.keys()) this.unstored.delete(hash)
  }

  private use(entries: Map<string, CacheEntry>, entry: CacheEntry): void {
    entries.delete(entry.hash) // the last used is the last
    entries.set(entry.hash, entry)
    this.touched.add(entry.hash)
    this.schedule()
  }

  private remove(entries: Map<string, CacheEntry>, hash: string): void {
    this.bytes -= entries.get(hash)?.size ?? 0
    entries.delete(hash)
    this.unstored.delete(hash)
    this.touched.delete(hash)
    this.removed.add(hash)
    this.schedule()
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => void this.store(), STORE_MS)
  }
}

/** Returns the hash of a chunk's data as the server computes it (sessionmsg.HashChunk), in hex. */
export function hashOf(data: Uint8Array): string {
  return toHex(sha256(data).subarray(0, HASH_BYTES)) // crypto.subtle is missing on pages loaded over plain http
}
