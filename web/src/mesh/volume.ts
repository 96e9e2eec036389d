// A volume is the input of a meshing worker: the blocks of one chunk with a margin of its eight neighbours, so that
// occlusion and light cross borders. The margin is 15 blocks because light reaches 15 blocks.

import { SIZE } from '../world/coords'
import { VOID, type World } from '../world/world'

export const MARGIN = 15
export const WIDTH = SIZE + 2 * MARGIN
export const LAYER = WIDTH * WIDTH

/** Blocks from y = 0 to height − 1 at index y·LAYER + z·WIDTH + x, x and z counted from the margin's corner. */
export interface Volume {
  blocks: Uint16Array
  /** The number of layers; everything above is air under the open sky. */
  height: number
}

/** Copies the volume around chunk (cx, cz). Missing neighbours read as VOID. */
export function copyVolume(world: World, cx: number, cz: number): Volume {
  const around = []
  for (let dz = -1; dz <= 1; dz++) for (let dx = -1; dx <= 1; dx++) around.push(world.chunk(cx + dx, cz + dz))
  let top = 0 // the number of sections up to the highest non-empty one
  for (const chunk of around) {
    if (!chunk) continue
    for (let s = chunk.sections.length; s > top; s--) {
      if (chunk.sections[s - 1] !== 0) top = s
    }
  }
  const height = Math.max(1, top) * SIZE
  const blocks = new Uint16Array(LAYER * height)
  for (let i = 0; i < 9; i++) {
    const chunk = around[i]
    const dx = (i % 3) - 1
    const dz = Math.floor(i / 3) - 1
    const x0 = dx < 0 ? SIZE - MARGIN : 0 // the range of the chunk's blocks within the volume, half-open
    const x1 = dx > 0 ? MARGIN : SIZE
    const z0 = dz < 0 ? SIZE - MARGIN : 0
    const z1 = dz > 0 ? MARGIN : SIZE
    const toX = MARGIN + dx * SIZE + x0
    for (let s = 0; s < height / SIZE; s++) {
      const section = chunk ? (chunk.sections[s] ?? 0) : VOID
      if (section === 0) continue
      for (let y = 0; y < SIZE; y++) {
        for (let z = z0; z < z1; z++) {
          const to = (s * SIZE + y) * LAYER + (MARGIN + dz * SIZE + z) * WIDTH + toX
          if (typeof section === 'number') {
            blocks.fill(section, to, to + x1 - x0)
          } else {
            const from = (y << 10) | (z << 5)
            for (let x = x0, at = to; x < x1; x++, at++) blocks[at] = section[from + x] ?? 0
          }
        }
      }
    }
  }
  return { blocks, height }
}
