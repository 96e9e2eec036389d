// Ray casting from the camera through the block grid (Amanatides & Woo, 1987).

import type { Box } from '../world/blocks'
import { HALF_WIDTH, HEIGHT, type Blocks } from './body'

/** Coordinates along x, y and z. */
export type Vector = readonly [x: number, y: number, z: number]

export interface Hit {
  x: number
  y: number
  z: number
  /** The outward normal of the face that was hit; all zero if the ray starts inside the block. */
  normal: Vector
  /** From the origin of the ray, in blocks. */
  distance: number
}

const AXES = [0, 1, 2] as const
type Axis = (typeof AXES)[number]

/** Returns the unit vector along yaw and pitch. */
export function direction(yaw: number, pitch: number): Vector {
  return [-Math.sin(yaw) * Math.cos(pitch), Math.sin(pitch), Math.cos(yaw) * Math.cos(pitch)]
}

/**
 * Returns the unit vector from the camera through a point of the screen; right and up are the tangents of its angles from the
 * middle.
 */
export function directionThrough(yaw: number, pitch: number, right: number, up: number): Vector {
  const [fx, fy, fz] = direction(yaw, pitch)
  const x = fx - right * Math.cos(yaw) + up * Math.sin(yaw) * Math.sin(pitch)
  const y = fy + up * Math.cos(pitch)
  const z = fz - right * Math.sin(yaw) - up * Math.cos(yaw) * Math.sin(pitch)
  const length = Math.hypot(x, y, z)
  return [x / length, y / length, z / length]
}

/** Returns the yaw and pitch of a vector. */
export function anglesOf(dx: number, dy: number, dz: number): { yaw: number; pitch: number } {
  return { yaw: Math.atan2(-dx, dz), pitch: Math.atan2(dy, Math.hypot(dx, dz)) }
}

/** Returns the first block within reach along dir (a unit vector) for which stops(block) is true and one of whose boxes the ray hits. */
export function castRay(
  blocks: Blocks,
  origin: Vector,
  dir: Vector,
  reach: number,
  stops: (block: number) => boolean,
  boxesOf?: (block: number) => readonly Box[],
): Hit | null {
  const cell: [number, number, number] = [Math.floor(origin[0]), Math.floor(origin[1]), Math.floor(origin[2])]
  const next: [number, number, number] = [Infinity, Infinity, Infinity] // distance to the next boundary on each axis
  for (const axis of AXES) {
    if (dir[axis] === 0) continue
    const ahead = dir[axis] > 0 ? cell[axis] + 1 - origin[axis] : origin[axis] - cell[axis]
    next[axis] = ahead / Math.abs(dir[axis])
  }
  let normal: Vector = [0, 0, 0]
  let distance = 0
  for (;;) {
    const block = blocks.get(...cell)
    if (stops(block)) {
      const boxes = boxesOf?.(block)
      if (!boxes || boxes.some(isWhole)) return { x: cell[0], y: cell[1], z: cell[2], normal, distance }
      let first: Hit | null = null
      for (const box of boxes) {
        const hit = enterBox(cell, box, origin, dir)
        if (hit && hit.distance <= (first?.distance ?? reach)) first = hit
      }
      if (first) return first
    }
    const axis = next[0] < next[1] ? (next[0] < next[2] ? 0 : 2) : next[1] < next[2] ? 1 : 2
    distance = next[axis]
    if (!(distance <= reach)) return null
    next[axis] += Math.abs(1 / dir[axis])
    cell[axis] += Math.sign(dir[axis])
    normal = normalAgainst(dir, axis)
  }
}

/** Returns the distance along dir (a unit vector) to a body; null if the ray misses it or starts inside it. */
export function castBody(origin: Vector, dir: Vector, feet: { x: number; y: number; z: number }): number | null {
  const box: Box = [-HALF_WIDTH, 0, -HALF_WIDTH, HALF_WIDTH, HEIGHT, HALF_WIDTH]
  // a player who overlaps another one must still be able to aim at blocks
  return enterBox([feet.x, feet.y, feet.z], box, origin, dir)?.distance || null
}

function isWhole(box: Box): boolean {
  return box.every((v, i) => v === (i < 3 ? 0 : 1))
}

/** Returns the unit vector along an axis that points against dir. */
function normalAgainst(dir: Vector, axis: Axis): Vector {
  const normal: [number, number, number] = [0, 0, 0]
  normal[axis] = -Math.sign(dir[axis])
  return normal
}

/** Returns where the ray enters a box within the block at cell (the slab method); null if it misses. */
function enterBox(cell: Vector, box: Box, origin: Vector, dir: Vector): Hit | null {
  const [x0, y0, z0, x1, y1, z1] = box
  const lowCorner: Vector = [x0, y0, z0]
  const highCorner: Vector = [x1, y1, z1]
  let normal: Vector = [0, 0, 0]
  let enter = 0
  let leave = Infinity
  for (const axis of AXES) {
    const low = cell[axis] + lowCorner[axis] - origin[axis]
    const high = cell[axis] + highCorner[axis] - origin[axis]
    if (dir[axis] === 0) {
      if (low > 0 || high < 0) return null
      continue
    }
    const near = (dir[axis] > 0 ? low : high) / dir[axis]
    const far = (dir[axis] > 0 ? high : low) / dir[axis]
    leave = Math.min(leave, far)
    if (near <= enter) continue
    enter = near
    normal = normalAgainst(dir, axis)
  }
  return enter <= leave ? { x: cell[0], y: cell[1], z: cell[2], normal, distance: enter } : null
}
