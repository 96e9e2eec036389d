import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { TILE } from '../src/render/pixels'
import { MAX_ZIP, PackError, TILE_NAMES, readPack } from '../src/render/texture-pack'
import { LAYERS, drawAllTiles, drawTile, useTiles } from '../src/render/tiles'
import { zipOf } from './zip'

const file = (name: string) => readFileSync(new URL(`../../gameserver/luanti/tiles/${name}.png`, import.meta.url))
const STONE = TILE_NAMES.indexOf('stone')
const DIRT = TILE_NAMES.indexOf('dirt')

/** Returns a picture of one colour; the browser decodes PNG files, node does not. */
const decode = (_: Uint8Array, edge: number) => Promise.resolve(new Uint8ClampedArray(4 * edge * edge).fill(200))

/** Returns a file that says it has so many pixels. */
function sized(width: number, height = width): Buffer {
  const png = Buffer.from(file('stone'))
  png.writeUInt32BE(width, 16)
  png.writeUInt32BE(height, 20)
  return png
}

afterEach(() => useTiles({ edge: TILE, pictures: new Map() }))

test('pictures take the place of the tiles of their names, others stay', async () => {
  const dirt = drawTile(DIRT)
  const [before] = drawAllTiles()
  const zip = zipOf({
    'textures/Stone.png': file('stone'),
    'readme.txt': Buffer.from('hello'),
    'nothing.png': file('dirt'),
  })
  const pack = await readPack(zip, decode)
  expect([...pack.pictures.keys()]).toEqual([STONE])
  expect(pack.edge).toBe(16)
  useTiles(pack)
  expect(drawTile(STONE)).toEqual(new Uint8ClampedArray(4 * TILE * TILE).fill(200))
  expect(drawTile(DIRT)).toEqual(dirt)
  const [after] = drawAllTiles()
  const size = 4 * TILE * TILE
  expect(after!.pixels.subarray(DIRT * size, (DIRT + 1) * size)).toEqual(
    before!.pixels.subarray(DIRT * size, (DIRT + 1) * size),
  )
})

test('with a picture of 32 pixels all are drawn with as many', async () => {
  useTiles(await readPack(zipOf({ 'stone.png': sized(32), 'dirt.png': file('dirt') }), decode))
  const levels = drawAllTiles()
  expect(levels.map(({ edge }) => edge)).toEqual([32, 16, 8, 4, 2, 1])
  for (const { edge, pixels } of levels) expect(pixels.length).toBe(4 * edge * edge * LAYERS)
  expect(drawTile(STONE).length).toBe(4 * TILE * TILE) // of icons
  const grass = TILE_NAMES.indexOf('grass_top')
  const at = (x: number, y: number) =>
    levels[0]!.pixels.subarray(4 * (32 * (32 * grass + y) + x), 4 * (32 * (32 * grass + y) + x) + 3)
  expect(at(9, 30)).toEqual(new Uint8Array(drawTile(grass).subarray(4 * (15 * TILE + 4), 4 * (15 * TILE + 4) + 3)))
})

test.each([
  ['tooLarge', new Uint8Array(MAX_ZIP + 1)],
  ['noZip', new Uint8Array(0)],
  ['noZip', new Uint8Array(1000).fill(7)],
  ['noZip', zipOf({ 'stone.png': file('stone') }).subarray(40)],
  ['noTiles', zipOf({ 'granite.png': file('stone') })],
  ['badPicture', zipOf({ 'stone.png': sized(64) })],
  ['badPicture', zipOf({ 'stone.png': sized(32, 16) })],
  ['badPicture', zipOf({ 'stone.png': Buffer.from('no picture') })],
  ['badPicture', zipOf({ 'stone.png': Buffer.alloc(1 << 20) })], // a kilobyte, deflated
  ['tooLarge', zipOf(Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`${i}.txt`, Buffer.alloc(0)])))],
] as const)('it is refused: %s', async (fault, zip) => {
  const reason = await readPack(zip, decode).catch((reason: unknown) => reason)
  expect(reason).toBeInstanceOf(PackError)
  expect((reason as PackError).fault).toBe(fault)
})

test('bytes that are changed at random are read, or refused by a fault', async () => {
  const zip = zipOf({ 'stone.png': file('stone'), 'dirt.png': file('dirt') })
  for (let i = 0; i < zip.length; i += 3) {
    const bad = zip.slice()
    bad[i] = bad[i]! ^ 0x55
    const reason = await readPack(bad, decode).catch((reason: unknown) => reason)
    if (reason instanceof Error) expect(reason).toBeInstanceOf(PackError)
  }
})
