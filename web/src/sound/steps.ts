// The steps of somebody who walks: one for each so many blocks, and where they land or arrive.

const STRIDE = 2.1 // blocks

export class Steps {
  private walked = 0
  private last: { x: number; y: number; z: number } | null = null

  /** Reports whether somebody has made a step, who is at a position now. */
  move(x: number, y: number, z: number, onGround: boolean): boolean {
    if (this.last) this.walked += Math.hypot(x - this.last.x, y - this.last.y, z - this.last.z)
    this.last = { x, y, z }
    if (!onGround || this.walked < STRIDE) return false
    this.walked = 0
    return true
  }
}
