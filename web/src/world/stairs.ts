// Corners of stairs, as the server makes them for players of other games (chunk/stairs.go).

import { STAIRS } from './block-table'
import { isStairs, kindOf, stateOf } from './blocks'

/**
 * The quarters of a block that stairs fill besides their slab: of those that are straight, of outer and of inner corners, in each
 * direction. Bit 0 is at the low x and z, bit 1 at the high x, bits 2 and 3 at the high z. The first four are also the quarters at
 * each side of a block.
 */
const QUARTERS = [0b1010, 0b0101, 0b1100, 0b0011, 0b1000, 0b0001, 0b0100, 0b0010, 0b1110, 0b0111, 0b1101, 0b1011]
const SIDES = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
] as const

interface Blocks {
  get(x: number, y: number, z: number): number
}

/** A change of a block. */
export interface StairsChange {
  x: number
  z: number
  block: number
}

/** Returns the changes that place stairs: they, and those beside them, become corners. The first is that at the place itself. */
export function placeStairs(blocks: Blocks, x: number, y: number, z: number, block: number): StairsChange[] {
  const placed = { x, z, block: cornered(blocks, x, y, z, block) }
  const after: Blocks = {
    get: (bx, by, bz) => (bx === x && by === y && bz === z ? placed.block : blocks.get(bx, by, bz)),
  }
  const beside = SIDES.map(([dx, dz]) => ({ x: x + dx, z: z + dz, before: blocks.get(x + dx, y, z + dz) }))
  return [
    placed,
    ...beside
      .map(({ x, z, before }) => ({ x, z, before, block: cornered(after, x, y, z, before) }))
      .filter(({ before, block }) => before !== block),
  ]
}

/**
 * Returns straight stairs as they are between other blocks: they become an outer corner if stairs that begin at their high side go
 * another way, and an inner corner if such stairs end at their low side, unless stairs beside them go on as they do. Other blocks
 * stay what they are.
 */
function cornered(blocks: Blocks, x: number, y: number, z: number, block: number): number {
  const state = kindOf(block).shape - STAIRS
  const direction = state % QUARTERS.length
  if (!isStairs(block) || direction >= 4) return block
  const half = state - direction
  /** Returns the quarters at a side that touch a quarter of the stairs there. */
  const met = (side: number) => {
    const [dx = 0, dz = 0] = SIDES[side] ?? []
    const beside = blocks.get(x + dx, y, z + dz)
    const other = kindOf(beside).shape - STAIRS - half
    if (!isStairs(beside) || other < 0 || other >= QUARTERS.length) return 0
    const q = QUARTERS[other] ?? 0
    const opposite = side < 2 ? ((q & 0b0101) << 1) | ((q & 0b1010) >> 1) : (q << 2) | (q >> 2)
    return opposite & (QUARTERS[side] ?? 0)
  }
  const high = QUARTERS[direction] ?? 0
  /** Reports whether the stairs beside a quarter are as straight as these. */
  const goesOn = (quarter: number) =>
    [0, 1, 2, 3].some((side) => {
      const quarters = QUARTERS[side] ?? 0
      return side >> 1 !== direction >> 1 && (quarters & quarter) !== 0 && met(side) === (high & quarters)
    })
  const isOne = (quarters: number) => quarters > 0 && (quarters & (quarters - 1)) === 0
  const front = met(direction)
  const back = met(direction ^ 1)
  let become = high
  if (isOne(front) && !goesOn(high ^ front)) become = front
  else if (isOne(back) && !goesOn(back)) become = high | back
  return stateOf(block, STAIRS + half + QUARTERS.indexOf(become))
}
