// Small worlds and chunk bytes for the tests.

import { SECTION_BLOCKS, SIZE } from '../src/world/coords'
import type { Section } from '../src/world/codec'
import { Chunk, World } from '../src/world/world'

/** Returns a world of the chunks (−1, −1) to (1, 1), filled by fill. */
export function worldOf(sections: number, fill: (x: number, y: number, z: number) => number): World {
  const world = new World()
  world.height = sections * SIZE
  for (let cz = -1; cz <= 1; cz++) {
    for (let cx = -1; cx <= 1; cx++) {
      const chunk = new Chunk(cx, cz, Array<Section>(sections).fill(0))
      for (let y = 0; y < sections * SIZE; y++) {
        for (let z = 0; z < SIZE; z++) {
          for (let x = 0; x < SIZE; x++) {
            const block = fill(cx * SIZE + x, y, cz * SIZE + z)
            if (block !== 0) chunk.set(x, y, z, block)
          }
        }
      }
      world.put(chunk)
    }
  }
  return world
}

/** Encodes a chunk, as the server does. */
export function encodeChunk(sections: Uint16Array[]): Uint8Array {
  const bytes: number[] = [1, sections.length]
  for (const blocks of sections) {
    if (blocks.length !== SECTION_BLOCKS) throw new Error('a section has 32768 blocks')
    const palette = [...new Set(blocks)]
    const bits = [0, 1, 2, 4, 8].find((b) => palette.length <= 1 << b) ?? 16
    bytes.push(bits)
    if (bits === 16) {
      for (const block of blocks) bytes.push(block & 255, block >> 8)
      continue
    }
    bytes.push(palette.length & 255, palette.length >> 8)
    for (const block of palette) bytes.push(block & 255, block >> 8)
    if (bits === 0) continue
    const place = new Map(palette.map((block, i) => [block, i]))
    for (let i = 0; i < SECTION_BLOCKS;) {
      let byte = 0
      for (let shift = 0; shift < 8; shift += bits, i++) byte |= place.get(blocks[i]!)! << shift
      bytes.push(byte)
    }
  }
  return Uint8Array.from(bytes)
}
