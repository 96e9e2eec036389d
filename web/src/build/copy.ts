// A copy of the blocks in a box, which can be turned and put elsewhere.

import type { Vector } from '../player/ray'
import { AIR, kindOf, mirrored, turnedRight } from '../world/blocks'
import type { Box } from '../world/claims'
import { sidesOf } from './shapes'
import type { Wanted } from './work'

export interface Copy {
  /** The number of blocks along x, y and z. */
  readonly sides: readonly [x: number, y: number, z: number]
  /** The block at (x, y, z) is at (y · sides[2] + z) · sides[0] + x. */
  readonly blocks: Uint16Array
}

/** Copies the blocks of a box; air takes the place of those that cannot be placed, such as bedrock. */
export function copyBox(blocks: { get(x: number, y: number, z: number): number }, box: Box): Copy {
  const sides = sidesOf(box)
  const copied = new Uint16Array(sides[0] * sides[1] * sides[2])
  let at = 0
  for (let y = box.min[1]; y <= box.max[1]; y++) {
    for (let z = box.min[2]; z <= box.max[2]; z++) {
      for (let x = box.min[0]; x <= box.max[0]; x++) {
        const block = blocks.get(x, y, z)
        copied[at++] = kindOf(block).placeable ? block : AIR
      }
    }
  }
  return { sides, blocks: copied }
}

/** Returns a copy turned by 90° to the right, seen from above. */
export function turned({ sides: [width, height, length], blocks }: Copy): Copy {
  const result = new Uint16Array(blocks.length)
  let at = 0
  for (let y = 0; y < height; y++) {
    for (let z = 0; z < width; z++) {
      for (let x = 0; x < length; x++)
        result[at++] = turnedRight(blocks[(y * length + (length - 1 - x)) * width + z] ?? AIR)
    }
  }
  return { sides: [length, height, width], blocks: result }
}

/** Returns a copy mirrored along an axis: 0 is x, 1 is y, 2 is z. */
export function flipped({ sides, blocks }: Copy, axis: 0 | 1 | 2): Copy {
  const [width, height, length] = sides
  const result = new Uint16Array(blocks.length)
  let at = 0
  for (let y = 0; y < height; y++) {
    for (let z = 0; z < length; z++) {
      for (let x = 0; x < width; x++) {
        const [fx, fy, fz] = [
          axis === 0 ? width - 1 - x : x,
          axis === 1 ? height - 1 - y : y,
          axis === 2 ? length - 1 - z : z,
        ]
        result[at++] = mirrored(blocks[(fy * length + fz) * width + fx] ?? AIR, axis)
      }
    }
  }
  return { sides, blocks: result }
}

/** Returns the blocks of a copy whose lowest layer has its middle at a place. Its air is left out. */
export function placed({ sides: [width, height, length], blocks }: Copy, middle: Vector): Wanted[] {
  const x0 = middle[0] - (width >> 1)
  const z0 = middle[2] - (length >> 1)
  const wanted: Wanted[] = []
  let at = 0
  for (let y = 0; y < height; y++) {
    for (let z = 0; z < length; z++) {
      for (let x = 0; x < width; x++) {
        const block = blocks[at++] ?? AIR
        if (block !== AIR) wanted.push({ x: x0 + x, y: middle[1] + y, z: z0 + z, block })
      }
    }
  }
  return wanted
}

/** Returns how many blocks of each kind a copy has, most first, as CSV. */
export function materialsOf({ blocks }: Copy, nameOf: (block: number) => string): string {
  const counts = new Map<string, number>()
  for (const block of blocks) {
    if (block !== AIR) counts.set(nameOf(block), (counts.get(nameOf(block)) ?? 0) + 1)
  }
  const rows = [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `"${name}",${count}`)
  return `${['block,count', ...rows].join('\r\n')}\r\n`
}

/** Returns the number of blocks of a copy that are not air. */
export function countBlocks({ blocks }: Copy): number {
  return blocks.reduce((n, block) => n + (block === AIR ? 0 : 1), 0)
}
