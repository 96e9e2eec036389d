import { expect, test } from 'vitest'
import { ALL_FACES, facesTowards, startsOf, quadRangesOf } from '../src/render/facing'
import { worldOf } from './columns'
import { landOf, meshOf } from './land'

// relative to the camera: the section's low corner, and the directions +x −x +y −y +z −z that can be visible
test.each([
  ['in its middle', -16, -16, -16, 0b111111],
  ['east of it, high above', -100, -100, -16, 0b110101],
  ['west of it', 5, -16, -16, 0b111110],
  ['on its eastern side: nothing of −x is west of there', -32, -16, -16, 0b111101],
  ['under it, south of it', -16, 40, -90, 0b011011],
])('from %s', (_, x, y, z, want) => {
  expect(facesTowards(x, y, z)).toBe(want | 0b11000000)
})

test('in a real section, a face is skipped only if it faces away', () => {
  const rough = worldOf(1, (x, y, z) => (y < 9 + ((x * 7 + z * 3) % 5) && (x + y + z) % 11 !== 0 ? 1 : 0))
  const land = landOf(rough)
  const { opaque } = meshOf(land, land.chunk(0, 0)!, 0)
  const quads = opaque.length / 8
  const starts = startsOf(opaque)
  expect(starts).toHaveLength(9)
  for (const [ex, ey, ez] of <[number, number, number][]>[
    [16, 16, 16],
    [100, 40, 16],
    [-3, 11, 31],
    [5.5, 0.5, -60],
    [16, -9, 16],
  ]) {
    const shown = new Set<number>()
    for (const { from, to } of quadRangesOf(starts, facesTowards(-ex, -ey, -ez)))
      for (let q = from; q < to; q++) shown.add(q)
    for (let q = 0; q < quads; q++) {
      const word = opaque[q * 8]!
      const face = (word >> 18) & 7
      const plane = (word >> (6 * (face >> 1))) & 63
      const eye = [ex, ey, ez][face >> 1]!
      const towards = face & 1 ? eye < plane : eye > plane
      if (towards && !shown.has(q)) throw new Error(`face ${face} at ${plane} is not drawn from ${ex}, ${ey}, ${ez}`)
    }
    if (ex !== 16 || ey < 0) expect(shown.size).toBeLessThan(quads * 0.9)
  }
})

test('ranges: what is next to one another is one, far pieces are not', () => {
  const starts = [0, 100, 200, 300, 310, 400, 500, 500, 520]
  expect(quadRangesOf(starts, ALL_FACES)).toEqual([{ from: 0, to: 520 }])
  expect(quadRangesOf(starts, 0b000101)).toEqual([
    { from: 0, to: 100 },
    { from: 200, to: 300 },
  ])
  expect(quadRangesOf(starts, 0b010100)).toEqual([{ from: 200, to: 400 }]) // including ten quads that face away
  expect(quadRangesOf(starts, 0)).toEqual([])
  expect(startsOf(new Uint32Array(0))).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0])
})
