// Which chunks are drawn as blocks, for the material: far land is left out there. It fades out while a chunk appears, and is back at once
// when a chunk is removed.

import { DataTexture, NearestFilter, RedFormat } from 'three'
import { chunkKey } from '../world/coords'

const SIDE = 64 // chunks; the mask repeats
const FADE_S = 0.5

export class ShownMask {
  readonly texture: DataTexture
  private readonly values = new Uint8Array(SIDE * SIDE)
  private readonly fading = new Map<number, { at: number; share: number }>()

  constructor() {
    this.texture = new DataTexture(this.values, SIDE, SIDE, RedFormat)
    this.texture.magFilter = this.texture.minFilter = NearestFilter
    this.texture.needsUpdate = true
  }

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
    this.texture.needsUpdate = true
  }
}

function indexOf(x: number, z: number): number {
  return (z & (SIDE - 1)) * SIDE + (x & (SIDE - 1))
}
