// The steps of somebody who walks: one for each so many blocks, and where they land.

const STRIDE = 2.1 // blocks
const MOVED = 8 // blocks between two looks: neither walked nor fallen

export class Steps {
  private walked = 0
  private last: { x: number; y: number; z: number } | null = null

  /** Reports whether somebody has made a step, who is at a position now. */
  move(x: number, y: number, z: number, onGround: boolean): boolean {
    const by = this.last ? Math.hypot(x - this.last.x, y - this.last.y, z - this.last.z) : 0
    this.last = { x, y, z }
    this.walked = by < MOVED ? this.walked + by : 0
    if (!onGround || this.walked < STRIDE) return false
    this.walked = 0
    return true
  }
}
