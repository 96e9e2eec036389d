// The properties of each block id: appearance, collision and light. The ids are the server's (block-table.ts). Unknown ids are
// shown as magenta cubes.

import { ROWS, type BlockRow } from './block-rows'
import {
  COLOURS,
  CUBE,
  DOOR,
  FENCE,
  FENCE_POST,
  GATE,
  GROUPS,
  LADDER,
  LIQUID,
  NAMES,
  NONE,
  OPEN_DOOR,
  OPEN_GATE,
  OPEN_TRAPDOOR,
  PLANT,
  SHAPE_BOXES,
  SIGN,
  SLAB,
  SOUNDS,
  STAIRS,
  TORCH,
  TRAPDOOR,
  UPPER_SLAB,
  WALL_SIGN,
} from './block-table'

export interface BlockKind {
  /** The name of the block of which this is a state. */
  readonly name: string
  /** The group of the inventory. */
  readonly group: string
  /** See block-table.ts. */
  readonly shape: number
  readonly translucent: boolean
  readonly leafy: boolean
  /** Snow falls where the block is on top. */
  readonly cold: boolean
  readonly sound: (typeof SOUNDS)[number]
  /** Stops bodies. */
  readonly solid: boolean
  /** Hides the faces of its neighbours, and stops light. */
  readonly opaque: boolean
  readonly placeable: boolean
  readonly breakable: boolean
  /** The light that the block emits, 0 to 15. */
  readonly glow: number
  /** The block of which this is a state: the one that players hold. */
  readonly base: number
  /** The texture layers. */
  readonly top: number
  readonly side: number
  readonly bottom: number
}

function kindFrom(
  { shape, flags, light, group, layers: [top, side, bottom], state }: BlockRow,
  id: number,
  name: string,
): BlockKind {
  return {
    name,
    group: GROUPS[group & 15] ?? '',
    shape,
    translucent: (flags & 32) !== 0,
    leafy: (flags & 8) !== 0,
    cold: (flags & 64) !== 0,
    sound: SOUNDS[group >> 4] ?? 'stone',
    solid: !(flags & 1),
    opaque: !(flags & 2),
    placeable: !(flags & 4),
    breakable: !(flags & 4),
    glow: light & 15,
    base: id - state,
    top,
    side,
    bottom,
  }
}

const names = NAMES.split(',').flatMap((name) => (name.startsWith(' ') ? COLOURS.map((colour) => colour + name) : name))
const baseNames: string[] = [] // by id

/** By id. */
export const KINDS: readonly BlockKind[] = ROWS.map((row, id) => {
  if (row.state === 0) baseNames[id] = names.shift() ?? ''
  return kindFrom(row, id, baseNames[id - row.state] ?? '')
})

const UNKNOWN = kindFrom({ shape: CUBE, flags: 4, light: 0, group: 0, layers: [0, 0, 0], state: 0 }, -1, 'Unknown')

export function kindOf(block: number): BlockKind {
  return KINDS[block] ?? UNKNOWN
}

export const AIR = 0
export const WATER = 5

/** The blocks of the inventory, in order: not their states. */
export const PLACEABLE: readonly number[] = KINDS.flatMap((kind, id) =>
  kind.placeable && kind.base === id ? [id] : [],
)

/** Reports whether a block stops a body. VOID (not loaded, or below the floor) does. */
export function isSolid(block: number): boolean {
  return kindOf(block).solid
}

/** Reports whether a block can be aimed at. */
export function isAimable(block: number): boolean {
  const { shape } = kindOf(block)
  return shape !== NONE && shape !== LIQUID
}

export function isPlant(block: number): boolean {
  return kindOf(block).shape === PLANT
}

/** Reports whether a block is a ladder, or a trapdoor that is open: mostly it is above one. */
export function isClimbable(block: number): boolean {
  const { shape } = kindOf(block)
  return (shape >= LADDER && shape < DOOR) || (shape >= OPEN_TRAPDOOR && shape < FENCE_POST)
}

/** Reports whether a block is half of a door. */
export function isDoor(block: number): boolean {
  const { shape } = kindOf(block)
  return shape >= DOOR && shape < GATE
}

export function isSign(block: number): boolean {
  const { shape } = kindOf(block)
  return shape >= SIGN && shape < LADDER
}

export function isStairs(block: number): boolean {
  const { shape } = kindOf(block)
  return shape >= STAIRS && shape < FENCE
}

/** A box within a block: its low and high corners. */
export type Box = readonly [x0: number, y0: number, z0: number, x1: number, y1: number, z1: number]

const WHOLE: Box = [0, 0, 0, 1, 1, 1]
const STALKS: Box = [0.15, 0, 0.15, 0.85, 0.8, 0.85]
const BOXES = SHAPE_BOXES.map((boxes, shape) =>
  shape === PLANT
    ? [STALKS]
    : shape === LIQUID
      ? [WHOLE]
      : boxes.map((box) => box.map((sixteenths) => sixteenths / 16) as unknown as Box),
)

/** Returns the parts of a block that can be aimed at, and that stop bodies if it is solid. */
export function boxesOf(block: number): readonly Box[] {
  return BOXES[kindOf(block).shape] ?? []
}

/** Returns the smallest box around a block's boxes. */
export function boundsOf(block: number): Box {
  const boxes = boxesOf(block)
  const bound = (i: number) => (i < 3 ? Math.min : Math.max)(...boxes.map((box) => box[i] ?? 0))
  return [bound(0), bound(1), bound(2), bound(3), bound(4), bound(5)]
}

/** Reports whether placing a block may replace this one. */
export function isReplaceable(block: number): boolean {
  const { shape } = kindOf(block)
  return shape <= PLANT && shape !== CUBE
}

const STATES = new Map(KINDS.map(({ base, shape }, id) => [256 * base + shape, id]))

/** Returns the state of a block that has a shape; the block itself if there is none. */
export function stateOf(block: number, shape: number): number {
  return STATES.get(256 * kindOf(block).base + shape) ?? block
}

/** Returns the number of the direction in which a vector points most: +x −x +z −z. */
function directionOf(x: number, z: number): number {
  return Math.abs(x) > Math.abs(z) ? (x > 0 ? 0 : 1) : z > 0 ? 2 : 3
}

/**
 * Returns the state in which a block is placed by a player who looks along ahead, at a face with that normal; y: the height of the
 * point that they aim at within its block. -1 if it cannot be placed there.
 */
export function stateFor(
  block: number,
  [aheadX, , aheadZ]: readonly number[],
  [nx = 0, ny = 0, nz = 0]: readonly number[],
  y: number,
): number {
  const { shape } = kindOf(block)
  const upper = ny < 0 || (ny === 0 && y > 0.5)
  if (shape === SLAB) return block + Number(upper)
  if (shape === TRAPDOOR)
    return block + 4 * Number(upper) + (ny === 0 ? directionOf(-nx, -nz) : directionOf(aheadX ?? 0, aheadZ ?? 0))
  if (shape === STAIRS)
    return stateOf(block, STAIRS + Number(upper) * UPPER_STAIRS + directionOf(aheadX ?? 0, aheadZ ?? 0))
  if (shape === DOOR || shape === GATE) return block + directionOf(aheadX ?? 0, aheadZ ?? 0)
  if (shape === TORCH) return ny > 0 ? block : ny < 0 ? -1 : block + 1 + directionOf(-nx, -nz)
  if (shape === SIGN)
    return ny !== 0 ? block + directionOf(aheadX ?? 0, aheadZ ?? 0) : block + 4 + directionOf(-nx, -nz)
  if (shape === LADDER) return ny !== 0 ? -1 : block + directionOf(-nx, -nz)
  return block
}

/** How many shapes of stairs are at the bottom of their block, and how many at its top. */
const UPPER_STAIRS = (FENCE - STAIRS) / 2

/** The first of the four shapes that have directions, in the order of directionOf. */
const DIRECTED = [
  ...[0, 4, 8, 12, 16, 20].map((state) => STAIRS + state), // straight, outer and inner ones, at the bottom and at the top
  TORCH + 1,
  SIGN,
  WALL_SIGN,
  LADDER,
  DOOR,
  OPEN_DOOR,
  GATE,
  OPEN_GATE,
  TRAPDOOR,
  TRAPDOOR + 4,
  OPEN_TRAPDOOR,
  OPEN_TRAPDOOR + 4,
]
/** The direction that each becomes by a turn of 90° to the right, seen from above. */
const TURNED = [2, 3, 1, 0]

/** Returns a block turned by 90° to the right, seen from above. */
export function turnedRight(block: number): number {
  const { shape } = kindOf(block)
  for (const first of DIRECTED) {
    const direction = shape - first
    if (direction >= 0 && direction < 4) return block - direction + (TURNED[direction] ?? 0)
  }
  return block
}

/** Returns a block mirrored along an axis: 0 is x, 1 is y, 2 is z. */
export function mirrored(block: number, axis: 0 | 1 | 2): number {
  const { shape } = kindOf(block)
  if (axis === 1) {
    if (shape === SLAB) return block + 1
    if (shape === UPPER_SLAB) return block - 1
    if (isStairs(block))
      return stateOf(block, shape < STAIRS + UPPER_STAIRS ? shape + UPPER_STAIRS : shape - UPPER_STAIRS)
    if (shape < TRAPDOOR) return block
    return (shape - TRAPDOOR) & 4 ? block - 4 : block + 4
  }
  if (isStairs(block) && (shape - STAIRS) % UPPER_STAIRS >= 4) {
    const corner = (shape - STAIRS) & 3 // +x+z −x−z −x+z +x−z
    return block - corner + (corner ^ (axis === 0 ? 2 : 3))
  }
  for (const first of DIRECTED) {
    const direction = shape - first
    if (direction >= 0 && direction < 4 && direction >> 1 === axis >> 1) return block + (direction % 2 === 0 ? 1 : -1)
  }
  return block
}

/** Returns what a block becomes when a slab is placed on the face of it with that normal: both slabs are the whole block; else null. */
export function joinSlabs(there: number, block: number, ny: number): number | null {
  const { shape, base } = kindOf(there)
  if (base !== block || !(shape === SLAB ? ny > 0 : shape === UPPER_SLAB && ny < 0)) return null
  const { side } = kindOf(there)
  return KINDS.findIndex((kind) => kind.shape === CUBE && kind.side === side && kind.top === side)
}

/** Returns half of a door, a gate or a trapdoor as it is after it was used: open or closed; null if the block is none. */
export function usedBlock(block: number): number | null {
  const { shape, solid } = kindOf(block)
  if (shape < DOOR) return null
  const closed = shape < TRAPDOOR ? 4 : 8 // how many states are closed, and how many are open
  return solid ? block + closed : block - closed
}

/** Returns y of the other half of the door that a block is half of; null if there is none. The lowest two of a stack are one door. */
export function otherHalf(
  world: { get(x: number, y: number, z: number): number },
  x: number,
  y: number,
  z: number,
): number | null {
  const block = world.get(x, y, z)
  if (!isDoor(block)) return null
  let below = y
  while (world.get(x, below - 1, z) === block) below--
  const half = (y - below) % 2 ? y - 1 : y + 1
  return world.get(x, half, z) === block ? half : null
}
