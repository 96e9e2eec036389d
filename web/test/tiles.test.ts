import { describe, expect, test } from 'vitest'
import { mipmapsOf } from '../src/render/mipmaps'
import { TILE } from '../src/render/pixels'
import { LAYERS, drawAllTiles, drawTile } from '../src/render/tiles'
import { TILES } from '../src/world/block-table'

const shown = (pixels: Uint8ClampedArray | Uint8Array) => {
  let count = 0
  for (let i = 3; i < pixels.length; i += 4) if (pixels[i]! >= 128) count++
  return count / (pixels.length / 4)
}

describe('mipmaps', () => {
  test.each(Array.from({ length: LAYERS }, (_, layer) => layer))(
    'layer %d shows as large a part at every size',
    (layer) => {
      const levels = mipmapsOf(drawTile(layer), TILE)
      expect(levels.map((level) => Math.sqrt(level.length / 4))).toEqual([16, 8, 4, 2, 1])
      levels.forEach((level) => {
        const pixels = level.length / 4
        expect(shown(level) * pixels).toBe(Math.round(shown(levels[0]!) * pixels))
      })
    },
  )

  test('holes do not tint what is around them', () => {
    const pixels = new Uint8ClampedArray(4 * TILE * TILE)
    for (let i = 0; i < TILE * TILE; i++) pixels.set(i % 3 === 0 ? [255, 0, 0, 0] : [40, 120, 60, 255], 4 * i)
    for (const level of mipmapsOf(pixels, TILE)) {
      for (let i = 0; i < level.length; i += 4) expect([...level.subarray(i, i + 3)]).toEqual([40, 120, 60])
    }
  })
})

test('a level of the texture array holds every tile, in the order of the layers', () => {
  for (const { edge, pixels } of drawAllTiles()) expect(pixels.length).toBe(4 * edge * edge * LAYERS)
  const { pixels } = drawAllTiles()[0]!
  for (const layer of [TILES.indexOf('poppy'), LAYERS - 1]) {
    const drawn = mipmapsOf(drawTile(layer), TILE)[0]!
    expect([...pixels.subarray(layer * drawn.length, (layer + 1) * drawn.length)]).toEqual([...drawn])
  }
})
