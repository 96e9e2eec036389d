// Computes the light of a volume. Sky light falls from above without loss; sky light and block light spread in all
// directions and lose one level per step. The result has one byte per block: sky light in the high four bits, block light
// in the low four.

import { BLOCKS_LIGHT, DIMS, GLOW } from './tables'
import { LAYER, WIDTH, type Volume } from './volume'

const FULL = 15
const STEPS = [1, -1, WIDTH, -WIDTH, LAYER, -LAYER]

let queue = new Int32Array(1 << 16) // reused between volumes; each worker has its own

export function lightVolume(volume: Volume): Uint8Array {
  const light = new Uint8Array(volume.blocks.length)
  spread(volume, light, 4, seedSkyLight(volume, light))
  spread(volume, light, 0, seedBlockLight(volume, light))
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

/** Lights every block under the open sky. Queues those from which light may spread, and returns how many there are. */
function seedSkyLight({ blocks, height }: Volume, light: Uint8Array): number {
  const lowest = new Int16Array(LAYER) // of each column, the lowest block that the sky lights directly
  for (let column = 0; column < LAYER; column++) {
    let level = FULL
    let y = height - 1
    for (; y >= 0; y--) {
      const index = y * LAYER + column
      const block = blocks[index] ?? 0
      if (BLOCKS_LIGHT[block]) break
      level -= DIMS[block] ?? 0
      if (level <= 0) break
      light[index] = level << 4
    }
    lowest[column] = y + 1
  }
  let count = 0
  for (let z = 0; z < WIDTH; z++) {
    for (let x = 0; x < WIDTH; x++) {
      const column = z * WIDTH + x
      const own = lowest[column] ?? 0
      let darkTo = own // light leaves this column where a neighbour is not directly lit
      if (x > 0) darkTo = Math.max(darkTo, lowest[column - 1] ?? 0)
      if (x < WIDTH - 1) darkTo = Math.max(darkTo, lowest[column + 1] ?? 0)
      if (z > 0) darkTo = Math.max(darkTo, lowest[column - WIDTH] ?? 0)
      if (z < WIDTH - 1) darkTo = Math.max(darkTo, lowest[column + WIDTH] ?? 0)
      for (let y = own; y < darkTo; y++) count = push(count, y * LAYER + column)
    }
  }
  return count
}

function seedBlockLight({ blocks }: Volume, light: Uint8Array): number {
  let count = 0
  for (let i = 0; i < blocks.length; i++) {
    const glow = GLOW[blocks[i] ?? 0] ?? 0
    if (glow === 0) continue
    light[i] = (light[i] ?? 0) | glow
    count = push(count, i)
  }
  return count
}

/** Spreads the light of the queued blocks, breadth first; shift selects sky light (4) or block light (0). */
function spread({ blocks }: Volume, light: Uint8Array, shift: number, count: number): void {
  const keep = shift === 4 ? 0x0f : 0xf0
  for (let at = 0; at < count; at++) {
    const index = queue[at] ?? 0
    const level = ((light[index] ?? 0) >> shift) & 15
    if (level <= 1) continue
    const x = index % WIDTH
    const z = Math.floor(index / WIDTH) % WIDTH
    for (let d = 0; d < 6; d++) {
      if ((d === 0 && x === WIDTH - 1) || (d === 1 && x === 0)) continue
      if ((d === 2 && z === WIDTH - 1) || (d === 3 && z === 0)) continue
      const next = index + (STEPS[d] ?? 0)
      if (next < 0 || next >= blocks.length) continue
      const block = blocks[next] ?? 0
      if (BLOCKS_LIGHT[block]) continue
      const spreading = level - 1 - (DIMS[block] ?? 0)
      const there = light[next] ?? 0
      if (spreading <= ((there >> shift) & 15)) continue
      light[next] = (there & keep) | (spreading << shift)
      count = push(count, next)
    }
  }
}
