// Inflates and decodes chunks, then puts them into the world. Inflating is asynchronous: block changes that arrive for a
// chunk in the meantime are queued and applied after it. A chunk of which only the hash comes is taken from the cache, or requested.

import { decodeChunk } from '../world/codec'
import { chunkKey, chunkOf } from '../world/coords'
import type { Edits } from '../world/edits'
import { Chunk, type World } from '../world/world'
import { fromBase64, inflate } from './bytes'
import type { ChunkCache } from './chunk-cache'
import type { BlockChange } from './protocol'

const MAX_CHUNK_BYTES = 2 + 32 * (1 + 2 * 32 * 32 * 32) // wire.MaxChunkBytes

interface Load {
  changes: BlockChange[]
}

/** How long the cache is waited for: browsers may never answer. Then the server sends the chunk. */
const CACHE_MS = 3000

export class ChunkLoader {
  private loading = new Map<number, Load>()

  constructor(
    private readonly world: World,
    private readonly edits: Edits,
    private readonly loaded: (x: number, z: number) => void,
    private readonly failed: (reason: unknown) => void,
    private readonly cache: Pick<ChunkCache, 'get' | 'put'>,
    private readonly request: (x: number, z: number) => void,
  ) {}

  async load(x: number, z: number, data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const bytes = typeof data === 'string' ? fromBase64(data) : data
    void this.cache.put(bytes)
    try {
      await this.decode(x, z, this.begin(x, z), bytes)
    } catch (reason) {
      this.failed(reason)
    }
  }

  /** Loads a chunk of which the hash has come. */
  async loadHash(x: number, z: number, hash: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const load = this.begin(x, z)
    const late = new Promise<null>((resolve) => setTimeout(() => resolve(null), CACHE_MS))
    const data = await Promise.race([this.cache.get(typeof hash === 'string' ? fromBase64(hash) : hash), late])
    if (this.loading.get(chunkKey(x, z)) !== load) return // unloaded, or replaced
    if (data) {
      try {
        await this.decode(x, z, load, data)
        return
      } catch {
        // the server sends it again
      }
    }
    this.request(x, z)
  }

  private begin(x: number, z: number): Load {
    const load: Load = { changes: [] }
    this.loading.set(chunkKey(x, z), load)
    return load
  }

  private async decode(x: number, z: number, load: Load, data: Uint8Array<ArrayBuffer>): Promise<void> {
    const key = chunkKey(x, z)
    let chunk: Chunk
    try {
      chunk = new Chunk(x, z, decodeChunk(await inflate(data, MAX_CHUNK_BYTES)))
    } catch (reason) {
      if (this.loading.get(key) === load) this.loading.delete(key)
      throw reason
    }
    if (this.loading.get(key) !== load) return // unloaded, or replaced by newer data
    this.loading.delete(key)
    this.world.put(chunk)
    this.edits.chunkLoaded(x, z)
    for (const change of load.changes) this.edits.applyCommitted(change.x, change.y, change.z, change.block)
    this.loaded(x, z)
  }

  unload(x: number, z: number): void {
    this.loading.delete(chunkKey(x, z))
    this.world.remove(x, z)
  }

  applyChange(change: BlockChange): void {
    const load = this.loading.get(chunkKey(chunkOf(change.x), chunkOf(change.z)))
    if (load) load.changes.push(change)
    else this.edits.applyCommitted(change.x, change.y, change.z, change.block)
  }

  clear(): void {
    this.loading.clear()
  }
}
