// The leaves of far sections, which are most of what is drawn of them, as cubes of 2³ blocks instead of single blocks.

import { SIZE } from '../world/coords'
import { LEAFY, OPAQUE } from './tables'
import { LAYER, WIDTH, type Volume } from './volume'

const LEAST = 3 // leaf blocks in a cube
const DENSE = 6 // in one whose faces replace those of other blocks: a trunk in its crown
const CUBES = SIZE / 2
const ROW = CUBES + 2 // with a margin, like the volume
const PLANE = ROW * ROW
const STEPS = [1, PLANE, ROW] // of x, y, z
const STRIDES = [1, LAYER, WIDTH]

// reused: the number of leaf blocks of each cube, and the last of them
const counts = new Uint8Array(PLANE * ROW)
const leaves = new Uint16Array(PLANE * ROW)

/** Finds the cubes of a volume. Returns false if there are none. */
export function findCubes({ blocks, faces, hides }: Volume): boolean {
  counts.fill(0)
  let found = 0
  for (let row = 0; row < LAYER; row++) {
    const y = Math.floor(row / WIDTH)
    const z = row % WIDTH
    const first = ((y + 1) >> 1) * PLANE + ((z + 1) >> 1) * ROW
    const mark = (x: number) => {
      const block = blocks[row * WIDTH + x] ?? 0
      if (!LEAFY[block]) return
      const cube = first + ((x + 1) >> 1)
      counts[cube] = (counts[cube] ?? 0) + 1
      leaves[cube] = block
      found++
    }
    mark(0)
    mark(WIDTH - 1)
    for (let left = (faces[row] ?? 0) & ~(hides[row] ?? 0); left !== 0; left &= left - 1) {
      mark(32 - Math.clz32(left & -left))
    }
  }
  return found >= LEAST
}

/**
 * Calls add for each face of a cube in a direction that borders neither another cube nor rock, with the face's low corner along
 * the three axes, in blocks. light is that of the brightest block beyond it. dense: it replaces the faces of other blocks.
 */
export function eachFace(
  { blocks, shade }: Volume,
  face: number,
  add: (x: number, y: number, z: number, block: number, light: number, dense: boolean) => void,
): void {
  const axis = face >> 1
  const outward = face & 1 ? -1 : 1
  const step = outward * (STEPS[axis] ?? 0)
  const uStride = STRIDES[(axis + 1) % 3] ?? 0
  const vStride = STRIDES[(axis + 2) % 3] ?? 0
  const beyond = (face & 1 ? -1 : 2) * (STRIDES[axis] ?? 0)
  for (let y = 0; y < CUBES; y++) {
    for (let z = 0; z < CUBES; z++) {
      for (let x = 0; x < CUBES; x++) {
        const cube = (y + 1) * PLANE + (z + 1) * ROW + x + 1
        if ((counts[cube] ?? 0) < LEAST || (counts[cube + step] ?? 0) >= LEAST) continue
        const at = (2 * y + 1) * LAYER + (2 * z + 1) * WIDTH + 2 * x + 1 + beyond
        let light = 0
        let rock = true
        for (const next of [at, at + uStride, at + vStride, at + uStride + vStride]) {
          const here = shade[next] ?? 0
          light = Math.max(light & 0xf0, here & 0xf0) | Math.max(light & 15, here & 15)
          rock &&= OPAQUE[blocks[next] ?? 0] === 1
        }
        if (!rock) add(2 * x, 2 * y, 2 * z, leaves[cube] ?? 0, light, (counts[cube] ?? 0) >= DENSE)
      }
    }
  }
}
