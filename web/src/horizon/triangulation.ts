// Right-triangulated irregular networks: a height field as triangles, fewer where it is flat (Evans, Kirkpatrick and Townsend,
// "Right-Triangulated Irregular Networks", 2001). The errors are computed as in Mapbox's Martini.

import { CELLS, POINTS } from './tile'

/** The triangles that are divided, the widest first: the points a, b and c of each, of which c is the right angle. */
const DIVIDED = divided()

function divided(): Uint16Array {
  const all: number[] = []
  let level: [number, number, number][] = [
    [0, POINTS * POINTS - 1, CELLS],
    [POINTS * POINTS - 1, 0, POINTS * CELLS],
  ]
  while (level.length > 0) {
    const next: typeof level = []
    for (const [a, b, c] of level) {
      if (isSmallest(a, c)) continue
      all.push(a, b, c)
      const m = (a + b) / 2
      next.push([c, a, m], [b, c, m])
    }
    level = next
  }
  return Uint16Array.from(all)
}

/** Reports whether a triangle with a leg from a to c has legs of one cell. */
function isSmallest(a: number, c: number): boolean {
  const x = Math.abs((a % POINTS) - (c % POINTS))
  return x + Math.abs(Math.floor(a / POINTS) - Math.floor(c / POINTS)) <= 1
}

/** Returns the triangles of a height field, three points each, which differ from it by at most that much. */
export function triangulate(heights: ArrayLike<number>, most: number): number[] {
  const errors = new Float32Array(POINTS * POINTS)
  const at = (i: number) => heights[i] ?? 0
  for (let t = DIVIDED.length - 3; t >= 0; t -= 3) {
    const a = DIVIDED[t] ?? 0
    const b = DIVIDED[t + 1] ?? 0
    const c = DIVIDED[t + 2] ?? 0
    const m = (a + b) / 2
    let error = Math.max(errors[m] ?? 0, Math.abs((at(a) + at(b)) / 2 - at(m)))
    // the middles of the halves; those of the smallest triangles are between points
    if (isMiddle(a, c)) error = Math.max(error, errors[(a + c) / 2] ?? 0)
    if (isMiddle(b, c)) error = Math.max(error, errors[(b + c) / 2] ?? 0)
    errors[m] = error
  }
  const triangles: number[] = []
  const visit = (a: number, b: number, c: number): void => {
    const m = (a + b) / 2
    if (!isSmallest(a, c) && (errors[m] ?? 0) > most) {
      visit(c, a, m)
      visit(b, c, m)
    } else triangles.push(a, b, c)
  }
  visit(0, POINTS * POINTS - 1, CELLS)
  visit(POINTS * POINTS - 1, 0, POINTS * CELLS)
  return triangles
}

/** Reports whether there is a point in the middle between two. */
function isMiddle(a: number, b: number): boolean {
  const x = (a % POINTS) + (b % POINTS)
  const z = Math.floor(a / POINTS) + Math.floor(b / POINTS)
  return (x & 1) === 0 && (z & 1) === 0
}
