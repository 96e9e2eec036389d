// The chunk codec (docs/protocol.md, "Chunk codec"), in which gateways send whole chunks.
//
//   u8 version = 1, u8 sections n (1 to 32); then per section, bottom up:
//   u8 bits b of {0,1,2,4,8,16}; if b < 16: u16le palette length p, p × u16le ids;
//   then 32768·b/8 bytes of indices (b = 16: of ids), little-endian within bytes; b = 0 has one id and no indices.

import { SECTION_BLOCKS } from './coords'

/** A section's blocks: one id if it is uniform, otherwise SECTION_BLOCKS ids in index order. */
export type Section = number | Uint16Array

const VERSION = 1
const MAX_SECTIONS = 32

/** Decodes a chunk into its sections, bottom up. Throws unless bytes is exactly one chunk. */
export function decodeChunk(bytes: Uint8Array): Section[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < 2) throw new Error('decode chunk: too short')
  const version = view.getUint8(0)
  if (version !== VERSION) throw new Error(`decode chunk: unknown version ${version}`)
  const count = view.getUint8(1)
  if (count < 1 || count > MAX_SECTIONS) throw new Error(`decode chunk: ${count} sections`)
  const sections: Section[] = []
  let at = 2
  for (let s = 0; s < count; s++) {
    if (at >= bytes.length) throw new Error('decode chunk: ends within a section')
    const bits = view.getUint8(at++)
    let palette: Uint16Array | null = null
    if (bits !== 16) {
      if (bits !== 0 && bits !== 1 && bits !== 2 && bits !== 4 && bits !== 8) {
        throw new Error(`decode chunk: ${bits} bits per index`)
      }
      if (at + 2 > bytes.length) throw new Error('decode chunk: ends within a palette')
      const length = view.getUint16(at, true)
      at += 2
      if (length < 1 || length > 1 << bits) throw new Error(`decode chunk: palette of ${length} at ${bits} bits`)
      if (at + 2 * length > bytes.length) throw new Error('decode chunk: ends within a palette')
      palette = new Uint16Array(length)
      for (let i = 0; i < length; i++, at += 2) palette[i] = view.getUint16(at, true)
    }
    if (bits === 0) {
      sections.push(palette?.[0] ?? 0)
      continue
    }
    const size = (SECTION_BLOCKS * bits) / 8
    if (at + size > bytes.length) throw new Error('decode chunk: ends within a section')
    sections.push(palette ? unpack(bytes, at, bits, palette) : wide(view, at))
    at += size
  }
  if (at !== bytes.length) throw new Error(`decode chunk: ${bytes.length - at} bytes too many`)
  return sections
}

function unpack(bytes: Uint8Array, at: number, bits: number, palette: Uint16Array): Uint16Array {
  const blocks = new Uint16Array(SECTION_BLOCKS)
  const mask = (1 << bits) - 1
  for (let i = 0; i < SECTION_BLOCKS;) {
    let byte = bytes[at++] ?? 0
    for (let shift = 0; shift < 8; shift += bits, i++, byte >>= bits) {
      const block = palette[byte & mask]
      if (block === undefined) throw new Error(`decode chunk: index ${byte & mask} beyond the palette`)
      blocks[i] = block
    }
  }
  return blocks
}

function wide(view: DataView, at: number): Uint16Array {
  const blocks = new Uint16Array(SECTION_BLOCKS)
  for (let i = 0; i < SECTION_BLOCKS; i++) blocks[i] = view.getUint16(at + 2 * i, true)
  return blocks
}
