// The texts of the signs in the loaded land.

import { blockKey, chunkOf } from './coords'

export interface Sign {
  readonly x: number
  readonly y: number
  readonly z: number
  /** Empty: the sign is blank. */
  readonly text: string
}

export class Signs {
  private readonly all = new Map<string, Sign>()

  add(signs: readonly Sign[]): void {
    for (const sign of signs) this.all.set(blockKey(sign.x, sign.y, sign.z), sign)
  }

  textAt(x: number, y: number, z: number): string {
    return this.all.get(blockKey(x, y, z))?.text ?? ''
  }

  /** Returns the signs with a text that are at most so many blocks away in each direction. */
  near(x: number, y: number, z: number, reach: number): Sign[] {
    const found: Sign[] = []
    for (const sign of this.all.values()) {
      const away = Math.max(Math.abs(sign.x - x), Math.abs(sign.y - y), Math.abs(sign.z - z))
      if (away <= reach && sign.text) found.push(sign)
    }
    return found
  }

  blockChanged(x: number, y: number, z: number): void {
    this.all.delete(blockKey(x, y, z))
  }

  /** Discards the signs of a chunk: it is gone, or sent again. */
  chunkGone(cx: number, cz: number): void {
    for (const [key, { x, z }] of this.all) if (chunkOf(x) === cx && chunkOf(z) === cz) this.all.delete(key)
  }

  clear(): void {
    this.all.clear()
  }
}
