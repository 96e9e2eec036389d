// The texts of the signs in the loaded land.

import { blockKey, chunkKey, chunkOf } from './coords'

export interface Sign {
  readonly x: number
  readonly y: number
  readonly z: number
  /** Empty: the sign is blank. */
  readonly text: string
}

export class Signs {
  private readonly chunks = new Map<number, Map<string, Sign>>()

  add(signs: readonly Sign[]): void {
    for (const sign of signs) {
      const key = chunkKey(chunkOf(sign.x), chunkOf(sign.z))
      const chunk = this.chunks.get(key) ?? new Map<string, Sign>()
      this.chunks.set(key, chunk.set(blockKey(sign.x, sign.y, sign.z), sign))
    }
  }

  textAt(x: number, y: number, z: number): string {
    return this.at(x, z)?.get(blockKey(x, y, z))?.text ?? ''
  }

  /** Returns the signs with a text that are at most so many blocks away in each direction. */
  near(x: number, y: number, z: number, reach: number): Sign[] {
    const found: Sign[] = []
    for (let cx = chunkOf(x - reach); cx <= chunkOf(x + reach); cx++)
      for (let cz = chunkOf(z - reach); cz <= chunkOf(z + reach); cz++)
        for (const sign of this.chunks.get(chunkKey(cx, cz))?.values() ?? []) {
          const away = Math.max(Math.abs(sign.x - x), Math.abs(sign.y - y), Math.abs(sign.z - z))
          if (away <= reach && sign.text) found.push(sign)
        }
    return found
  }

  blockChanged(x: number, y: number, z: number): void {
    this.at(x, z)?.delete(blockKey(x, y, z))
  }

  /** Discards the signs of a chunk: it is gone, or sent again. */
  chunkGone(cx: number, cz: number): void {
    this.chunks.delete(chunkKey(cx, cz))
  }

  clear(): void {
    this.chunks.clear()
  }

  private at(x: number, z: number): Map<string, Sign> | undefined {
    return this.chunks.get(chunkKey(chunkOf(x), chunkOf(z)))
  }
}
