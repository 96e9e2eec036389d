// The blocks of a line, a wall, a box or a hollow, in the order in which they are built: from below.

import type { Vector } from '../player/ray'
import { laterTexts } from '../text/later-texts'
import { isStairs, stateFor } from '../world/blocks'
import type { Box } from '../world/claims'

/** The limits of what is built or copied at once, in blocks. */
export const MAX_BLOCKS = 8192
export const MAX_SIDE = 64
/** The same where bulk edits are made, unless the player's role may change fewer blocks. */
export const BULK_MAX_BLOCKS = 65_536
export const BULK_MAX_SIDE = 256

export interface Limits {
  blocks: number
  side: number
}

export type Shape = 'line' | 'wall' | 'box' | 'hollow' | 'sphere' | 'shell'

const AXES = [0, 1, 2] as const

export function boxBetween(a: Vector, b: Vector): Box {
  const of = (choose: (...v: number[]) => number): [number, number, number] => [
    choose(a[0], b[0]),
    choose(a[1], b[1]),
    choose(a[2], b[2]),
  ]
  return { min: of(Math.min), max: of(Math.max) }
}

/** Returns the number of blocks along x, y and z. */
export function sidesOf({ min, max }: Box): [x: number, y: number, z: number] {
  return [max[0] - min[0] + 1, max[1] - min[1] + 1, max[2] - min[2] + 1]
}

/** Returns how many blocks a shape has. */
export function countOf(shape: Shape, a: Vector, b: Vector): number {
  const sides = sidesOf(boxBetween(a, b))
  if (shape === 'line') return Math.max(...sides)
  if (shape === 'sphere' || shape === 'shell') return roundPlaces(boxBetween(a, b), shape === 'shell').length
  const [x, y, z] = sides
  const inside = shape === 'hollow' ? sides.reduce((n, side) => n * Math.max(0, side - 2), 1) : 0
  return x * y * z - inside
}

/** Returns why a shape cannot be built, or null. */
export function problemOf(
  shape: Shape,
  a: Vector,
  b: Vector,
  { blocks, side }: Limits = { blocks: MAX_BLOCKS, side: MAX_SIDE },
): string | null {
  if (Math.max(...sidesOf(boxBetween(a, b))) > side) return laterTexts.build.maxSide(side)
  const round = shape === 'sphere' || shape === 'shell'
  // the box around a sphere has less than twice its blocks
  if ((round ? countOf('box', a, b) / 2 : countOf(shape, a, b)) > blocks) return laterTexts.build.maxBlocks(blocks)
  return null
}

/**
 * Returns the state in which a tool places a block between two corners: as by hand on the ground, for a player who looks along
 * ahead. Stairs in a line that rises go up along it.
 */
export function stateBetween(shape: Shape | null, a: Vector, b: Vector, block: number, ahead: Vector): number {
  const up = Math.sign(b[1] - a[1])
  const rises = shape === 'line' && isStairs(block) && up !== 0 && (a[0] !== b[0] || a[2] !== b[2])
  const along = rises ? [up * (b[0] - a[0]), 0, up * (b[2] - a[2])] : ahead
  const state = stateFor(block, along, [0, 1, 0], 0)
  return state < 0 ? block : state
}

/** Returns the places of a shape that problemOf accepts. */
export function placesOf(shape: Shape, a: Vector, b: Vector): Vector[] {
  if (shape === 'line') return lineBetween(a, b)
  const { min, max } = boxBetween(a, b)
  if (shape === 'sphere' || shape === 'shell') return roundPlaces({ min, max }, shape === 'shell')
  const places: Vector[] = []
  for (let y = min[1]; y <= max[1]; y++) {
    for (let z = min[2]; z <= max[2]; z++) {
      for (let x = min[0]; x <= max[0]; x++) {
        const at: Vector = [x, y, z]
        if (shape !== 'hollow' || AXES.some((i) => at[i] === min[i] || at[i] === max[i])) places.push(at)
      }
    }
  }
  return places
}

/** Returns the places of the ellipsoid that fills a box, or of its outer layer. */
function roundPlaces({ min, max }: Box, hollow: boolean): Vector[] {
  const sides = sidesOf({ min, max })
  const isInside = (...at: Vector) =>
    AXES.reduce<number>((sum, i) => sum + (((at[i] - min[i] + 0.5) * 2) / sides[i] - 1) ** 2, 0) <= 1
  const places: Vector[] = []
  for (let y = min[1]; y <= max[1]; y++) {
    for (let z = min[2]; z <= max[2]; z++) {
      for (let x = min[0]; x <= max[0]; x++) {
        const around =
          hollow && [-1, 1].every((d) => isInside(x + d, y, z) && isInside(x, y + d, z) && isInside(x, y, z + d))
        if (isInside(x, y, z) && !around) places.push([x, y, z])
      }
    }
  }
  return places
}

/** Returns the blocks of many that are at the edges of the box around all: what a ghost shows of them. */
export function outlineOf<T extends { x: number; y: number; z: number }>(blocks: readonly T[]): readonly T[] {
  const low = { x: Infinity, y: Infinity, z: Infinity }
  const high = { x: -Infinity, y: -Infinity, z: -Infinity }
  const axes = ['x', 'y', 'z'] as const
  for (const at of blocks) {
    for (const i of axes) {
      low[i] = Math.min(low[i], at[i])
      high[i] = Math.max(high[i], at[i])
    }
  }
  const edges = blocks.filter((at) => axes.filter((i) => at[i] === low[i] || at[i] === high[i]).length > 1)
  const every = Math.ceil(blocks.length / MAX_BLOCKS)
  return edges.length > 0 ? edges.slice(0, MAX_BLOCKS) : blocks.filter((_, i) => i % every === 0)
}

/** Returns the blocks of a straight line: one for each step along its longest side. */
function lineBetween(a: Vector, b: Vector): Vector[] {
  const steps = Math.max(...AXES.map((i) => Math.abs(b[i] - a[i])))
  const at = (step: number, i: 0 | 1 | 2) => Math.round(a[i] + ((b[i] - a[i]) * step) / Math.max(1, steps))
  const places = Array.from({ length: steps + 1 }, (_, step): Vector => [at(step, 0), at(step, 1), at(step, 2)])
  return a[1] > b[1] ? places.reverse() : places
}

/**
 * Returns the open places that are connected with one at its height or below it, as water would fill them; null if they are more
 * than MAX_BLOCKS, or farther than MAX_SIDE away.
 */
export function hollowFrom(start: Vector, isOpen: (x: number, y: number, z: number) => boolean): Vector[] | null {
  if (!isOpen(...start)) return []
  const seen = new Set([start.join()])
  const places: Vector[] = [start]
  for (let next = 0; next < places.length; next++) {
    const [x, y, z] = places[next] ?? start
    const around: Vector[] = [
      [x - 1, y, z],
      [x + 1, y, z],
      [x, y, z - 1],
      [x, y, z + 1],
      [x, y - 1, z],
      [x, y + 1, z],
    ]
    for (const at of around) {
      const key = at.join()
      if (at[1] > start[1] || seen.has(key) || !isOpen(...at)) continue
      seen.add(key)
      places.push(at)
      if (places.length > MAX_BLOCKS || AXES.some((i) => Math.abs(at[i] - start[i]) > MAX_SIDE)) return null
    }
  }
  return places.sort((a, b) => a[1] - b[1])
}

/** Returns the place beside the face of a block that a ray has hit. */
export function besideFace({ x, y, z, normal }: { x: number; y: number; z: number; normal: Vector }): Vector {
  return [x + normal[0], y + normal[1], z + normal[2]]
}

/**
 * Returns the place that a ray hits in the upright plane through a first corner, so that a second one can be chosen in the air. Of
 * the planes along x and along z it takes the one that the ray meets at the steeper angle; null if it meets none within reach.
 */
export function cornerInAir(origin: Vector, dir: Vector, first: Vector, reach: number, height: number): Vector | null {
  let best: { axis: 0 | 2; distance: number } | null = null
  for (const axis of [0, 2] as const) {
    const distance = (first[axis] + 0.5 - origin[axis]) / dir[axis]
    if (!(distance > 0 && distance <= reach)) continue
    if (!best || Math.abs(dir[axis]) > Math.abs(dir[best.axis])) best = { axis, distance }
  }
  if (!best) return null
  const { axis, distance } = best
  const along = (i: 0 | 1 | 2) => (i === axis ? first[i] : Math.floor(origin[i] + dir[i] * distance))
  return [along(0), Math.min(Math.max(along(1), 0), height - 1), along(2)]
}
