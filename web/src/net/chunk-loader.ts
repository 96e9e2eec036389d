// Chunks on their way into the world. Inflating takes a moment; block changes of a chunk that arrive meanwhile wait
// for it, so that none is lost or undone.

import { decodeChunk } from '../world/codec'
import { chunkKey, chunkOf } from '../world/coords'
import type { Edits } from '../world/edits'
import { Chunk, type World } from '../world/world'
import { fromBase64, inflate } from './bytes'
import type { BlockChange } from './protocol'

const MAX_CHUNK_BYTES = 2 + 32 * (1 + 2 * 32 * 32 * 32) // wire.MaxChunkBytes

export class ChunkLoader {
  private arriving = new Map<number, { changes: BlockChange[] }>()

  constructor(
    private readonly world: World,
    private readonly edits: Edits,
    private readonly arrived: (x: number, z: number) => void,
    private readonly damaged: (reason: unknown) => void,
  ) {}

  async chunk(x: number, z: number, data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const key = chunkKey(x, z)
    const arrival = { changes: [] as BlockChange[] }
    this.arriving.set(key, arrival)
    let chunk: Chunk
    try {
      chunk = new Chunk(x, z, decodeChunk(await inflate(typeof data === 'string' ? fromBase64(data) : data, MAX_CHUNK_BYTES)))
    } catch (reason) {
      if (this.arriving.get(key) === arrival) this.arriving.delete(key)
      this.damaged(reason)
      return
    }
    if (this.arriving.get(key) !== arrival) return // gone again, or replaced by newer data
    this.arriving.delete(key)
    this.world.put(chunk)
    this.edits.chunkLoaded(x, z)
    for (const change of arrival.changes) this.edits.committed(change.x, change.y, change.z, change.block)
    this.arrived(x, z)
  }

  gone(x: number, z: number): void {
    this.arriving.delete(chunkKey(x, z))
    this.world.remove(x, z)
  }

  change(change: BlockChange): void {
    const arrival = this.arriving.get(chunkKey(chunkOf(change.x), chunkOf(change.z)))
    if (arrival) arrival.changes.push(change)
    else this.edits.committed(change.x, change.y, change.z, change.block)
  }

  clear(): void {
    this.arriving.clear()
  }
}
