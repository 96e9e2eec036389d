// Two simple meshers to compare ours with, on the same sections. They draw every face between a block and air with its own
// four vertices: no light, no merging, no water or leaves apart.

import { SIZE } from '../world/coords'
import { AIR } from '../world/blocks'
import { LAYER, WIDTH, type Volume } from '../mesh/volume'

const NORMALS = [
  [1, 0, 0],
  [-1, 0, 0],
  [0, 1, 0],
  [0, -1, 0],
  [0, 0, 1],
  [0, 0, -1],
] as const
/** The corners of each face. */
const CORNERS = NORMALS.map(([nx, ny, nz]) =>
  [
    [0, 0],
    [1, 0],
    [0, 1],
    [1, 1],
  ].map(([u = 0, v = 0]) => (nx ? [(nx + 1) / 2, u, v] : ny ? [u, (ny + 1) / 2, v] : [u, v, (nz + 1) / 2])),
)
const UVS = [
  [0, 0],
  [1, 0],
  [0, 1],
  [1, 1],
] as const

export type BlockObject = Readonly<{ id: number }>

/** Returns the blocks of a volume as nested arrays of objects, [x][y][z], with the margin. */
export function nest({ blocks }: Volume): BlockObject[][][] {
  const range = [...Array(WIDTH).keys()]
  return range.map((x) => range.map((y) => range.map((z) => ({ id: blocks[y * LAYER + z * WIDTH + x] ?? 0 }))))
}

/**
 * Algorithm 4 of the dissertation VoxelPopuli: for each block and each face, adds the face's vertices, texture coordinates and
 * triangles unless the block is air or the block beyond is not. Returns the number of quads.
 */
export function meshObjects(blocks: BlockObject[][][]): number {
  const vertices: number[][] = []
  const uvs: number[][] = []
  const triangles: number[] = []
  let vertex = 0
  for (let x = 1; x <= SIZE; x++) {
    for (let y = 1; y <= SIZE; y++) {
      for (let z = 1; z <= SIZE; z++) {
        for (let face = 0; face < 6; face++) {
          const [nx = 0, ny = 0, nz = 0] = NORMALS[face] ?? []
          if (blocks[x]?.[y]?.[z]?.id === AIR || blocks[x + nx]?.[y + ny]?.[z + nz]?.id !== AIR) continue
          for (const [cx = 0, cy = 0, cz = 0] of CORNERS[face] ?? []) vertices.push([x + cx, y + cy, z + cz])
          for (const [u, v] of UVS) uvs.push([u, v])
          triangles.push(vertex, vertex + 1, vertex + 2, vertex + 2, vertex + 1, vertex + 3)
          vertex += 4
        }
      }
    }
  }
  return triangles.length / 6
}

const FLAT_CORNERS = Int8Array.from(CORNERS.flat(2))
const STEPS = [1, -1, LAYER, -LAYER, WIDTH, -WIDTH]
const MAX_QUADS = SIZE * SIZE * SIZE * 3
const positions = new Float32Array(MAX_QUADS * 12)
const texture = new Float32Array(MAX_QUADS * 8)
const indices = new Uint32Array(MAX_QUADS * 6)

/** The same loop over typed arrays, which are as large as any section needs. Returns the number of quads. */
export function meshTypedArrays({ blocks }: Volume): number {
  let quads = 0
  for (let y = 0; y < SIZE; y++) {
    for (let z = 0; z < SIZE; z++) {
      for (let x = 0; x < SIZE; x++) {
        const cell = (y + 1) * LAYER + (z + 1) * WIDTH + x + 1
        if (blocks[cell] === AIR) continue
        for (let face = 0; face < 6; face++) {
          if (blocks[cell + (STEPS[face] ?? 0)] !== AIR) continue
          for (let corner = 0; corner < 4; corner++) {
            const from = face * 12 + corner * 3
            const to = quads * 4 + corner
            positions[to * 3] = x + (FLAT_CORNERS[from] ?? 0)
            positions[to * 3 + 1] = y + (FLAT_CORNERS[from + 1] ?? 0)
            positions[to * 3 + 2] = z + (FLAT_CORNERS[from + 2] ?? 0)
            texture[to * 2] = corner & 1
            texture[to * 2 + 1] = corner >> 1
          }
          const vertex = quads * 4
          const to = quads * 6
          indices[to] = vertex
          indices[to + 1] = indices[to + 4] = vertex + 1
          indices[to + 2] = indices[to + 3] = vertex + 2
          indices[to + 5] = vertex + 3
          quads++
        }
      }
    }
  }
  return quads
}
