import { expect, test } from 'vitest'
import { CELL, CELLS, cellOf } from '../src/mesh/cells'
import { GROUPS, PARTS, WORDS_PER_QUAD, startsOf } from '../src/mesh/mesher'
import { ALL_FACES, addRanges, facesTowards } from '../src/render/facing'
import { worldOf } from './columns'
import { landOf, meshOf } from './land'

const ALL_CELLS = 255

// relative to the camera: the cell's low corner, and the directions +x −x +y −y +z −z that can be visible
test.each([
  ['in its middle', -8, -8, -8, 0b111111],
  ['east of it, high above', -100, -100, -8, 0b110101],
  ['west of it', 5, -8, -8, 0b111110],
  ['on its eastern side: nothing of −x is west of there', -16, -8, -8, 0b111101],
  ['under it, south of it', -8, 40, -90, 0b011011],
])('from %s', (_, x, y, z, want) => {
  expect(facesTowards(x, y, z)).toBe(want | 0b11000000)
})

function rangesOf(starts: Uint32Array, directions: number[], first = 0): [number, number][] {
  const ranges: [number, number][] = []
  addRanges({ addRange: (from, to) => ranges.push([from, to]) }, first, starts, directions)
  return ranges
}

/** Returns the direction, the plane and the cell of a quad. */
function quadOf(words: Uint32Array, quad: number): { face: number; plane: number; cell: number } {
  const corners = [0, 1, 2, 3].map((i) => words[quad * WORDS_PER_QUAD + 2 * i]!)
  const face = (corners[0]! >> 18) & 7
  const low = [0, 6, 12].map((shift) => Math.min(...corners.map((word) => (word >> shift) & 63)))
  const plane = low[face >> 1]!
  if (face < 6 && !(face & 1)) low[face >> 1]! -= 1
  return { face, plane, cell: cellOf(low[0]!, low[1]!, low[2]!) }
}

const rough = worldOf(1, (x, y, z) =>
  y < 19 + ((x * 7 + z * 3) % 5) && (x + y + z) % 11 !== 0 ? ((x + z) % 9 ? 1 : 7) : 0,
)
const land = landOf(rough)
const mesh = meshOf(land, land.chunk(0, 0)!, 0)

test('in a real section, a face is skipped only if it faces away', () => {
  const { opaque } = mesh
  const quads = opaque.length / WORDS_PER_QUAD
  for (const [ex, ey, ez] of <[number, number, number][]>[
    [16, 16, 16],
    [100, 40, 16],
    [-3, 11, 31],
    [5.5, 0.5, -60],
    [16, -9, 16],
  ]) {
    const shown = new Set<number>()
    const directions = Array.from({ length: CELLS }, (_, cell) => {
      const [x, y, z] = [cell & 1, cell >> 2, (cell >> 1) & 1].map((half) => half * CELL)
      return facesTowards(x! - ex, y! - ey, z! - ez)
    })
    for (const [from, to] of rangesOf(startsOf(mesh.starts, 0), directions))
      for (let q = from; q < to; q++) shown.add(q)
    for (let q = 0; q < quads; q++) {
      const { face, plane } = quadOf(opaque, q)
      const eye = [ex, ey, ez][face >> 1]!
      const towards = face & 1 ? eye < plane : eye > plane
      if (towards && !shown.has(q)) throw new Error(`face ${face} at ${plane} is not drawn from ${ex}, ${ey}, ${ez}`)
    }
    expect(shown.size).toBeLessThanOrEqual(quads)
  }
})

test('the quads of a section are grouped by direction and cell', () => {
  let cells = 0
  PARTS.forEach((part, i) => {
    const starts = startsOf(mesh.starts, i)
    expect(starts[GROUPS]).toBe(mesh[part].length / WORDS_PER_QUAD)
    for (let group = 0; group < GROUPS; group++) {
      for (let q = starts[group]!; q < starts[group + 1]!; q++) {
        const { face, cell } = quadOf(mesh[part], q)
        expect(face * CELLS + cell).toBe(group)
        cells |= 1 << cell
      }
    }
  })
  expect(cells).toBe(ALL_CELLS)
})

test('a range is what is drawn side by side, and nothing else', () => {
  // two hundred quads each of −x and −y, ten of +y between them; all in the lowest cell
  const starts = new Uint32Array(GROUPS + 1)
  const counts = [0, 200, 10, 200, 0, 100]
  for (let group = 0, sum = 0; group < GROUPS; group++) {
    starts[group] = sum
    if (group % CELLS === 0) sum += counts[group / CELLS] ?? 0
    starts[group + 1] = sum
  }
  const lowest = (directions: number) => [directions, 0, 0, 0, 0, 0, 0, 0]
  expect(rangesOf(starts, lowest(ALL_FACES))).toEqual([[0, 510]])
  expect(rangesOf(starts, lowest(ALL_FACES), 1000)).toEqual([[1000, 1510]])
  expect(rangesOf(starts, lowest(0b101000))).toEqual([[210, 510]])
  expect(rangesOf(starts, lowest(0b001010))).toEqual([
    [0, 200],
    [210, 410],
  ])
  expect(rangesOf(starts, [0, ...Array.from({ length: 7 }, () => ALL_FACES)])).toEqual([])
})
