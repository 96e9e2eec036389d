// Light over a volume: sky light falls from above without loss, both kinds flow sideways and lose one level a step.
// One byte a block: sky light in the high four bits, the glow of blocks in the low four.

import { BLOCKS_LIGHT, DIMS, GLOW } from './tables'
import { LAYER, WIDTH, type Volume } from './volume'

const FULL = 15
const STEPS = [1, -1, WIDTH, -WIDTH, LAYER, -LAYER]

let queue = new Int32Array(1 << 16) // reused between volumes; each worker has its own

export function lightVolume(volume: Volume): Uint8Array {
  const light = new Uint8Array(volume.blocks.length)
  flow(volume, light, 4, fallFromSky(volume, light))
  flow(volume, light, 0, glowOfBlocks(volume, light))
  return light
}

function push(count: number, index: number): number {
  if (count === queue.length) {
    const grown = new Int32Array(queue.length * 2)
    grown.set(queue)
    queue = grown
  }
  queue[count] = index
  return count + 1
}

/** Lights every block under the open sky; returns how many of them were queued because light may flow on from there. */
function fallFromSky({ blocks, height }: Volume, light: Uint8Array): number {
  const lowest = new Int16Array(LAYER) // of each column, the lowest block that the sky lights directly
  for (let column = 0; column < LAYER; column++) {
    let level = FULL
    let y = height - 1
    for (; y >= 0; y--) {
      const index = y * LAYER + column
      const block = blocks[index]
      if (BLOCKS_LIGHT[block]) break
      level -= DIMS[block]
      if (level <= 0) break
      light[index] = level << 4
    }
    lowest[column] = y + 1
  }
  let count = 0
  for (let z = 0; z < WIDTH; z++) {
    for (let x = 0; x < WIDTH; x++) {
      const column = z * WIDTH + x
      let darkTo = lowest[column] // light leaves this column where a neighbour is not lit directly
      if (x > 0) darkTo = Math.max(darkTo, lowest[column - 1])
      if (x < WIDTH - 1) darkTo = Math.max(darkTo, lowest[column + 1])
      if (z > 0) darkTo = Math.max(darkTo, lowest[column - WIDTH])
      if (z < WIDTH - 1) darkTo = Math.max(darkTo, lowest[column + WIDTH])
      for (let y = lowest[column]; y < darkTo; y++) count = push(count, y * LAYER + column)
    }
  }
  return count
}

function glowOfBlocks({ blocks }: Volume, light: Uint8Array): number {
  let count = 0
  for (let i = 0; i < blocks.length; i++) {
    if (GLOW[blocks[i]] === 0) continue
    light[i] |= GLOW[blocks[i]]
    count = push(count, i)
  }
  return count
}

/** Spreads the light of the queued blocks, breadth first; shift tells which of the two kinds. */
function flow({ blocks }: Volume, light: Uint8Array, shift: number, count: number): void {
  const keep = shift === 4 ? 0x0f : 0xf0
  for (let at = 0; at < count; at++) {
    const index = queue[at]
    const level = (light[index] >> shift) & 15
    if (level <= 1) continue
    const x = index % WIDTH
    const z = Math.floor(index / WIDTH) % WIDTH
    for (let d = 0; d < 6; d++) {
      if ((d === 0 && x === WIDTH - 1) || (d === 1 && x === 0)) continue
      if ((d === 2 && z === WIDTH - 1) || (d === 3 && z === 0)) continue
      const next = index + STEPS[d]
      if (next < 0 || next >= blocks.length) continue
      const block = blocks[next]
      if (BLOCKS_LIGHT[block]) continue
      const flowing = level - 1 - DIMS[block]
      if (flowing <= ((light[next] >> shift) & 15)) continue
      light[next] = (light[next] & keep) | (flowing << shift)
      count = push(count, next)
    }
  }
}
