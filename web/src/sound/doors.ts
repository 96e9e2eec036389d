// The halves of a door change one after the other, and make one sound.

import { isDoor } from '../world/blocks'

const TOGETHER_MS = 250

export class Doors {
  private last = { x: 0, y: 0, z: 0, at: -Infinity }

  /** Reports whether a change is that of the other half of the door that has just changed. */
  sounded(x: number, y: number, z: number, before: number, after: number, now: number): boolean {
    if (!isDoor(before) && !isDoor(after)) return false
    const { last } = this
    if (last.x === x && last.z === z && Math.abs(last.y - y) === 1 && now - last.at < TOGETHER_MS) {
      last.at = -Infinity // the next change is another one
      return true
    }
    this.last = { x, y, z, at: now }
    return false
  }
}
