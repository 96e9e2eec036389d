import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { crc32, deflateSync, inflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { TILE } from '../src/render/pixels'
import { LAYERS, drawTile } from '../src/render/tiles'
import { TILE_NAMES } from '../src/render/texture-pack'

// The textures that the server sends to clients of other games: TILES=write writes them.
const folder = new URL('../../gameserver/luanti/tiles/', import.meta.url)
const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
const ROW = 4 * TILE

function chunk(type: string, data: Uint8Array): Buffer {
  const content = Buffer.concat([Buffer.from(type), data])
  const out = Buffer.alloc(content.length + 8)
  out.writeUInt32BE(data.length, 0)
  content.copy(out, 4)
  out.writeUInt32BE(crc32(content), content.length + 4)
  return out
}

function encode(pixels: Uint8ClampedArray): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(TILE, 0)
  header.writeUInt32BE(TILE, 4)
  header.set([8, 6], 8) // eight bits of each: red, green, blue, alpha
  const rows = Buffer.alloc(TILE * (ROW + 1))
  for (let y = 0; y < TILE; y++) rows.set(pixels.subarray(y * ROW, (y + 1) * ROW), y * (ROW + 1) + 1)
  const parts = [chunk('IHDR', header), chunk('IDAT', deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([Buffer.from(SIGNATURE), ...parts])
}

// Only what encode writes is read.
function decode(file: Buffer): Uint8Array {
  const start = SIGNATURE.length + 12 + 13
  const length = file.readUInt32BE(start)
  const rows = inflateSync(file.subarray(start + 8, start + 8 + length))
  const pixels = new Uint8Array(TILE * ROW)
  for (let y = 0; y < TILE; y++) pixels.set(rows.subarray(y * (ROW + 1) + 1, (y + 1) * (ROW + 1)), y * ROW)
  return pixels
}

test('other games are sent the textures that this client draws', () => {
  expect(TILE_NAMES.length).toBe(LAYERS)
  if (process.env.TILES === 'write') {
    mkdirSync(folder, { recursive: true })
    TILE_NAMES.forEach((name, layer) => writeFileSync(new URL(`${name}.png`, folder), encode(drawTile(layer))))
  }
  TILE_NAMES.forEach((name, layer) => {
    const file = decode(readFileSync(new URL(`${name}.png`, folder)))
    expect(file, `${name}: run the tests with TILES=write`).toEqual(new Uint8Array(drawTile(layer)))
  })
})
