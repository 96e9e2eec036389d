// Inflates and decodes chunks, then puts them into the world. Inflating is asynchronous: block changes that arrive for a
// chunk in the meantime are queued and applied after it.

import { decodeChunk } from '../world/codec'
import { chunkKey, chunkOf } from '../world/coords'
import type { Edits } from '../world/edits'
import { Chunk, type World } from '../world/world'
import { fromBase64, inflate } from './bytes'
import type { BlockChange } from './protocol'

const MAX_CHUNK_BYTES = 2 + 32 * (1 + 2 * 32 * 32 * 32) // wire.MaxChunkBytes

export class ChunkLoader {
  private loading = new Map<number, { changes: BlockChange[] }>()

  constructor(
    private readonly world: World,
    private readonly edits: Edits,
    private readonly loaded: (x: number, z: number) => void,
    private readonly failed: (reason: unknown) => void,
  ) {}

  async load(x: number, z: number, data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const key = chunkKey(x, z)
    const load = { changes: [] as BlockChange[] }
    this.loading.set(key, load)
    let chunk: Chunk
    try {
      chunk = new Chunk(
        x,
        z,
        decodeChunk(await inflate(typeof data === 'string' ? fromBase64(data) : data, MAX_CHUNK_BYTES)),
      )
    } catch (reason) {
      if (this.loading.get(key) === load) this.loading.delete(key)
      this.failed(reason)
      return
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
