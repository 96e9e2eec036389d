// Which chunks are drawn as blocks, for the material: far land is left out there. It fades out while a chunk appears, and is back at once
// when a chunk is removed.

import { Texture } from '../gl/texture'
import { chunkKey } from '../world/coords'

const SIDE = 64 // chunks; the mask repeats
const FADE_S = 0.5

export class ShownMask {
  /** For each chunk, 255 if it is drawn as blocks; x and z modulo the side. */
  readonly values = new Uint8Array(SIDE * SIDE)
  readonly texture = new Texture([{ data: this.values, width: SIDE, height: SIDE }], {
    format: 'r8',
    enlarge: 'nearest',
  })
  private readonly fading = new Map<number, { at: number; share: number }>()

  add(x: number, z: number): void {
    this.fading.set(chunkKey(x, z), { at: indexOf(x, z), share: 0 })
  }

  remove(x: number, z: number): void {
    this.fading.delete(chunkKey(x, z))
    this.set(indexOf(x, z), 0)
  }

  update(dt: number): void {
    for (const [key, chunk] of this.fading) {
      chunk.share = Math.min(1, chunk.share + dt / FADE_S)
      this.set(chunk.at, chunk.share)
      if (chunk.share === 1) this.fading.delete(key)
    }
  }

  private set(at: number, share: number): void {
    this.values[at] = Math.round(255 * share)
    this.texture.change()
  }
}

function indexOf(x: number, z: number): number {
  return (z & (SIDE - 1)) * SIDE + (x & (SIDE - 1))
}
