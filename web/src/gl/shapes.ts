// Geometries of simple shapes.

import { Attribute, Geometry, Index } from './geometry'

/** Two triangles of four corners, which are in the order: lower left, lower right, upper right, upper left. */
export const QUAD = new Index(new Uint16Array([0, 1, 2, 0, 2, 3]))

const FACE = [0, 1, 2, 0, 2, 3] // of the four corners of a face

/** Returns a square that lies flat and is seen from above; reach is half of its side. */
export function floor(reach: number): Geometry {
  const [a, b] = [-reach, reach]
  const position = new Attribute(new Float32Array([a, 0, b, b, 0, b, b, 0, a, a, 0, a]), 3)
  return new Geometry({ attributes: { position }, index: QUAD })
}

/** Returns an upright rectangle around the zero point, which is seen from +z, with the coordinates of a texture on it. */
export function upright(width: number, height: number): Geometry {
  const [x, y] = [width / 2, height / 2]
  const position = new Attribute(new Float32Array([-x, -y, 0, x, -y, 0, x, y, 0, -x, y, 0]), 3)
  const uv = new Attribute(new Float32Array([0, 0, 1, 0, 1, 1, 0, 1]), 2)
  return new Geometry({ attributes: { position, uv }, index: QUAD })
}

/** Returns the corners of a box's triangles, 36 of three numbers each, and their normals; at is its middle. */
export function boxTriangles(
  size: readonly [number, number, number],
  at: readonly [number, number, number],
): { positions: number[]; normals: number[] } {
  const positions: number[] = []
  const normals: number[] = []
  for (let axis = 0; axis < 3; axis++) {
    for (const side of [1, -1]) {
      const [right, up] = [(axis + (side > 0 ? 1 : 2)) % 3, (axis + (side > 0 ? 2 : 1)) % 3] // right × up points outwards
      for (const corner of FACE) {
        const direction = [0, 0, 0]
        direction[axis] = side
        normals.push(...direction)
        direction[right] = corner === 1 || corner === 2 ? 1 : -1
        direction[up] = corner >= 2 ? 1 : -1
        for (const i of [0, 1, 2] as const) positions.push(at[i] + (size[i] / 2) * (direction[i] ?? 0))
      }
    }
  }
  return { positions, normals }
}

/** Returns the edges of a cube around the zero point, as lines. */
export function cubeEdges(side: number): Geometry {
  const ends: number[] = []
  for (let corner = 0; corner < 8; corner++) {
    for (const axis of [1, 2, 4]) {
      if (corner & axis) continue
      for (const end of [corner, corner | axis]) {
        ends.push(...[1, 2, 4].map((bit) => (end & bit ? side / 2 : -side / 2)))
      }
    }
  }
  return new Geometry({ attributes: { position: new Attribute(new Float32Array(ends), 3) } })
}
