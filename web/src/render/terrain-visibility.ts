// Finds the cells of 16³ blocks that can be seen, so that caves under the ground are not drawn. A line of sight leaves the
// camera's cell and never turns back on an axis. From cell to cell, it passes the face between them if the cell's blocks let it
// through from the face where it entered (mesh/openings.ts), and if the face is where the cell was seen on the screen: what can
// be seen through a cell is at most the rectangle that its entered faces cover.

import { CELL } from '../mesh/cells'
import { ALL_SIDES } from '../mesh/openings'
import { SIZE } from '../world/coords'

/** What is known of a chunk: of each section, its openings; undefined if it hides nothing. */
export interface Openings {
  openings: readonly (Uint8Array | undefined)[]
}

const MARGIN = 0.5 // in blocks: plants reach slightly out of their blocks
const NEAR = 0.05
const PER_CHUNK = SIZE / CELL
const STEPS = [
  [1, 0, 0],
  [-1, 0, 0],
  [0, 1, 0],
  [0, -1, 0],
  [0, 0, 1],
  [0, 0, -1],
] as const

export class TerrainVisibility {
  private width = 0 // cells along x and z; the camera's chunk is in the middle
  private height = 0 // cells; the highest layer is the open sky above the land, however high
  private chunks: (Openings | undefined)[] = []
  private entered = new Uint8Array(0) // by cell: the faces through which it was seen, as bits
  private rects = new Float32Array(0) // by cell: left, right, bottom, top on the screen, from −1 to 1
  private readonly rect = new Float32Array(4)
  private cornerX = 0 // the lowest cell
  private cornerZ = 0
  private eyeX = 0 // the camera's cell
  private eyeY = 0
  private eyeZ = 0
  private sky = 0 // the height of the camera, if it is above the land

  /**
   * Finds what can be seen from (x, y, z), in world blocks. matrix projects positions relative to the camera; at returns what is
   * known of a chunk, for the chunks at most radius away from the camera's.
   */
  update(
    [x, y, z]: readonly [number, number, number],
    matrix: ArrayLike<number>,
    radius: number,
    sections: number,
    at: (x: number, z: number) => Openings | undefined,
  ): void {
    const chunkX = Math.floor(x / SIZE)
    const chunkZ = Math.floor(z / SIZE)
    const across = 2 * radius + 1
    this.width = across * PER_CHUNK
    this.height = sections * PER_CHUNK + 1
    this.cornerX = (chunkX - radius) * PER_CHUNK
    this.cornerZ = (chunkZ - radius) * PER_CHUNK
    this.chunks = []
    for (let dz = -radius; dz <= radius; dz++) {
      for (let dx = -radius; dx <= radius; dx++) this.chunks.push(at(chunkX + dx, chunkZ + dz))
    }
    const cells = this.width * this.width * this.height
    if (this.entered.length < cells) {
      this.entered = new Uint8Array(cells)
      this.rects = new Float32Array(cells * 4)
    } else this.entered.fill(0, 0, cells)
    this.eyeX = Math.floor(x / CELL) - this.cornerX
    this.eyeZ = Math.floor(z / CELL) - this.cornerZ
    this.eyeY = Math.max(0, Math.min(this.height - 1, Math.floor(y / CELL)))
    this.sky = Math.max(y, (this.height - 1) * CELL) + CELL
    const start = this.index(this.eyeX, this.eyeY, this.eyeZ)
    this.entered[start] = ALL_SIDES
    this.rects.set([-1, 1, -1, 1], start * 4)
    let layer = [start] // cells at the same distance, in steps
    while (layer.length > 0) {
      const next: number[] = []
      for (const cell of layer) this.leave(cell, [x, y, z], matrix, next)
      layer = next
    }
  }

  /** Returns the cells of a section that can be seen, as bits; x and z: of its chunk. */
  seen(x: number, section: number, z: number): number {
    const cx = x * PER_CHUNK - this.cornerX
    const cz = z * PER_CHUNK - this.cornerZ
    if (cx < 0 || cz < 0 || cx >= this.width || cz >= this.width) return 0
    let bits = 0
    for (let cell = 0; cell < 8; cell++) {
      const index = this.index(cx + (cell & 1), section * PER_CHUNK + (cell >> 2), cz + ((cell >> 1) & 1))
      if (this.entered[index]) bits |= 1 << cell
    }
    return bits
  }

  private index(x: number, y: number, z: number): number {
    return (y * this.width + z) * this.width + x
  }

  /** Follows the lines of sight out of a cell. */
  private leave(cell: number, eye: readonly [number, number, number], matrix: ArrayLike<number>, next: number[]): void {
    const { width, height, entered, rects, rect } = this
    const x = cell % width
    const z = Math.floor(cell / width) % width
    const y = Math.floor(cell / width / width)
    const openings = this.openings(x, y, z)
    const first = x === this.eyeX && y === this.eyeY && z === this.eyeZ
    const from = entered[cell] ?? 0
    let sides = first || !openings ? ALL_SIDES : 0
    if (openings && !first) {
      const at = 6 * ((y & 1) * 4 + (z & 1) * 2 + (x & 1))
      for (let side = 0; side < 6; side++) if (from & (1 << side)) sides |= openings[at + side] ?? 0
    }
    for (let side = 0; side < 6; side++) {
      if (!(sides & (1 << side))) continue
      const [dx, dy, dz] = STEPS[side] ?? STEPS[0]
      if (dx * (x - this.eyeX) < 0 || dy * (y - this.eyeY) < 0 || dz * (z - this.eyeZ) < 0) continue
      const toX = x + dx
      const toY = y + dy
      const toZ = z + dz
      if (toX < 0 || toY < 0 || toZ < 0 || toX >= width || toY >= height || toZ >= width) continue
      if (!this.project(side, x, y, z, eye, matrix)) continue
      const left = Math.max(rect[0] ?? 0, rects[cell * 4] ?? 0)
      const right = Math.min(rect[1] ?? 0, rects[cell * 4 + 1] ?? 0)
      const bottom = Math.max(rect[2] ?? 0, rects[cell * 4 + 2] ?? 0)
      const top = Math.min(rect[3] ?? 0, rects[cell * 4 + 3] ?? 0)
      if (left > right || bottom > top) continue
      const to = this.index(toX, toY, toZ)
      const at = to * 4
      if (!entered[to]) {
        next.push(to)
        rects[at] = left
        rects[at + 1] = right
        rects[at + 2] = bottom
        rects[at + 3] = top
      } else {
        rects[at] = Math.min(rects[at] ?? 0, left)
        rects[at + 1] = Math.max(rects[at + 1] ?? 0, right)
        rects[at + 2] = Math.min(rects[at + 2] ?? 0, bottom)
        rects[at + 3] = Math.max(rects[at + 3] ?? 0, top)
      }
      entered[to] = (entered[to] ?? 0) | (1 << (side ^ 1))
    }
  }

  private openings(x: number, y: number, z: number): Uint8Array | undefined {
    const across = this.width / PER_CHUNK
    return this.chunks[(z >> 1) * across + (x >> 1)]?.openings[y >> 1]
  }

  /** Sets rect to what a face of a cell covers on the screen, at most. Returns false if it is behind the camera. */
  private project(
    side: number,
    x: number,
    y: number,
    z: number,
    [eyeX, eyeY, eyeZ]: readonly [number, number, number],
    m: ArrayLike<number>,
  ): boolean {
    const x0 = (x + this.cornerX) * CELL - eyeX
    const y0 = y * CELL - eyeY
    const z0 = (z + this.cornerZ) * CELL - eyeZ
    const top = y === this.height - 1 ? this.sky - eyeY : y0 + CELL
    const axis = side >> 1
    const low = side & 1
    const ax = axis === 0 ? (low ? x0 : x0 + CELL) : x0 - MARGIN
    const bx = axis === 0 ? ax : x0 + CELL + MARGIN
    const ay = axis === 1 ? (low ? y0 : top) : y0 - MARGIN
    const by = axis === 1 ? ay : top + MARGIN
    const az = axis === 2 ? (low ? z0 : z0 + CELL) : z0 - MARGIN
    const bz = axis === 2 ? az : z0 + CELL + MARGIN
    let left = Infinity
    let right = -Infinity
    let bottom = Infinity
    let upper = -Infinity
    let behind = 0
    for (let corner = 0; corner < 4; corner++) {
      const first = corner & 1
      const second = corner >> 1
      const px = axis === 0 || !first ? ax : bx
      const py = axis === 1 || !(axis === 0 ? first : second) ? ay : by
      const pz = axis === 2 || !second ? az : bz
      const w = (m[3] ?? 0) * px + (m[7] ?? 0) * py + (m[11] ?? 0) * pz + (m[15] ?? 0)
      if (w < NEAR) {
        behind++
        continue
      }
      const h = ((m[0] ?? 0) * px + (m[4] ?? 0) * py + (m[8] ?? 0) * pz + (m[12] ?? 0)) / w
      const v = ((m[1] ?? 0) * px + (m[5] ?? 0) * py + (m[9] ?? 0) * pz + (m[13] ?? 0)) / w
      left = Math.min(left, h)
      right = Math.max(right, h)
      bottom = Math.min(bottom, v)
      upper = Math.max(upper, v)
    }
    if (behind === 4) return false
    this.rect.set(behind ? [-1, 1, -1, 1] : [left, right, bottom, upper])
    return true
  }
}
