import { describe, expect, test } from 'vitest'
import { decodeChunk, type Section } from '../src/world/codec'
import { SECTION_BLOCKS, chunkKey, chunkOf, within } from '../src/world/coords'
import { encodeChunk } from './columns'

function dense(section: Section): Uint16Array {
  return typeof section === 'number' ? new Uint16Array(SECTION_BLOCKS).fill(section) : section
}

describe('chunk codec', () => {
  test('reads the example of docs/protocol.md: four sections of air', () => {
    const bytes = Uint8Array.from([1, 4, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0])
    expect(decodeChunk(bytes)).toEqual([0, 0, 0, 0])
  })

  test.each([1, 2, 3, 4, 5, 16, 17, 256, 257, 5000])('reads a section of %i different blocks', (kinds) => {
    const blocks = Uint16Array.from({ length: SECTION_BLOCKS }, (_, i) => (i * 7919 + 3) % kinds)
    const uniform = new Uint16Array(SECTION_BLOCKS).fill(9)
    const [below, section = 0] = decodeChunk(encodeChunk([uniform, blocks]))
    expect(below).toBe(9)
    expect(dense(section)).toEqual(blocks)
  })

  test('index is y·1024 + z·32 + x, low bits first', () => {
    const blocks = new Uint16Array(SECTION_BLOCKS)
    blocks[1] = 5
    const bytes = encodeChunk([blocks])
    expect([...bytes.slice(0, 10)]).toEqual([1, 1, 1, 2, 0, 0, 0, 5, 0, 0b10])
    expect(dense(decodeChunk(bytes)[0]!)[1]).toBe(5)
  })

  test('refuses what is not exactly one chunk', () => {
    const good = encodeChunk([Uint16Array.from({ length: SECTION_BLOCKS }, (_, i) => i % 3)])
    expect(() => decodeChunk(good)).not.toThrow()
    const long = new Uint8Array(good.length + 1)
    long.set(good)
    expect(() => decodeChunk(long)).toThrow(/too many/)
    for (const length of [0, 1, 2, 3, 4, 6, 10, good.length - 1]) {
      expect(() => decodeChunk(good.slice(0, length)), `${length} bytes`).toThrow()
    }
    expect(() => decodeChunk(Uint8Array.from([2, 1, 0, 1, 0, 0, 0]))).toThrow(/version/)
    expect(() => decodeChunk(Uint8Array.from([1, 0]))).toThrow(/sections/)
    expect(() => decodeChunk(Uint8Array.from([1, 33]))).toThrow(/sections/)
    expect(() => decodeChunk(Uint8Array.from([1, 1, 3, 1, 0, 0, 0]))).toThrow(/bits/)
    expect(() => decodeChunk(Uint8Array.from([1, 1, 0, 2, 0, 0, 0, 1, 0]))).toThrow(/palette/)
    const astray = good.slice() // three blocks at two bits: index 3 has none
    astray[astray.length - 1] = 0xff
    expect(() => decodeChunk(astray)).toThrow(/beyond/)
  })
})

test('chunk and place of negative blocks', () => {
  expect([-33, -32, -1, 0, 31, 32].map(chunkOf)).toEqual([-2, -1, -1, 0, 0, 1])
  expect([-33, -32, -1, 0, 31, 32].map(within)).toEqual([31, 0, 31, 0, 31, 0])
})

test('chunk keys differ, out to the limits of the world', () => {
  const edge = 2 ** 26
  const places = [-edge, -edge + 1, -5, -1, 0, 1, 5, edge - 2, edge - 1]
  const keys = new Set(places.flatMap((x) => places.map((z) => chunkKey(x, z))))
  expect(keys.size).toBe(places.length ** 2)
})
