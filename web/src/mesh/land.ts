// The chunks that a meshing worker holds: their blocks, and the light of each block. One byte per block: sky light in the
// high four bits, block light in the low four. A uniform section is one number, as in World.

import { SECTION_BLOCKS, SIZE, chunkKey, chunkOf, within } from '../world/coords'
import type { Section } from '../world/codec'

/** The light under the open sky. */
export const OPEN = 0xf0
export const COLUMNS = SIZE * SIZE

export type Bytes = number | Uint8Array
/** Ids below 256 are kept as bytes, which halves the memory. */
type Blocks = number | Uint8Array | Uint16Array

/** A chunk of the land. A block's index within it is y·1024 + z·32 + x, so that its section is index >> 15. */
export class LandChunk {
  readonly blocks: Blocks[]
  readonly light: Bytes[]
  /** Of each column (z·32 + x), the lowest block that the sky lights directly, */
  readonly lowest = new Int16Array(COLUMNS)
  /** and the lowest one that it lights fully, not below lowest. */
  readonly clear = new Int16Array(COLUMNS)
  /** The neighbours at +x −x +z −z. */
  readonly beside: (LandChunk | undefined)[] = [undefined, undefined, undefined, undefined]
  /** The sections that were meshed at least once, as bits. */
  meshed = 0
  /** Thickets are meshed too. */
  near = false

  constructor(
    readonly x: number,
    readonly z: number,
    /** A small number that is unique among the chunks of the land. */
    readonly slot: number,
    /** Chosen by the main thread; it identifies this version of the chunk. */
    readonly version: number,
    /** Whether this worker meshes the chunk, instead of only holding it for its neighbours. */
    readonly own: boolean,
    sections: Section[],
  ) {
    this.blocks = sections.map((section) => (typeof section === 'number' ? section : narrow(section)))
    this.light = sections.map(() => OPEN)
  }

  get height(): number {
    return this.blocks.length * SIZE
  }

  block(index: number): number {
    const section = this.blocks[index >> 15] ?? 0
    return typeof section === 'number' ? section : (section[index & 32767] ?? 0)
  }

  setBlock(index: number, block: number): void {
    const s = index >> 15
    const before = this.blocks[s] ?? 0
    let section = typeof before === 'number' ? narrow(new Uint16Array(SECTION_BLOCKS).fill(before)) : before
    if (block > 255 && section instanceof Uint8Array) section = Uint16Array.from(section)
    section[index & 32767] = block
    this.blocks[s] = section
  }

  lightAt(index: number): number {
    const section = this.light[index >> 15] ?? OPEN
    return typeof section === 'number' ? section : (section[index & 32767] ?? 0)
  }

  setLight(index: number, light: number): void {
    const s = index >> 15
    let section = this.light[s] ?? OPEN
    if (typeof section === 'number') section = this.light[s] = new Uint8Array(SECTION_BLOCKS).fill(section)
    section[index & 32767] = light
  }
}

function narrow(section: Uint16Array): Uint8Array | Uint16Array {
  const bytes = new Uint8Array(section.length)
  let bits = 0
  for (let i = 0; i < bytes.length; i++) {
    const block = section[i] ?? 0
    bits |= block
    bytes[i] = block
  }
  return bits > 255 ? section.slice() : bytes
}

const OPPOSITE = [1, 0, 3, 2]
export const BESIDE = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
] as const

export class Land {
  private readonly chunks = new Map<number, LandChunk>()
  private readonly freeSlots: number[] = []

  chunk(x: number, z: number): LandChunk | undefined {
    return this.chunks.get(chunkKey(x, z))
  }

  all(): IterableIterator<LandChunk> {
    return this.chunks.values()
  }

  /** Adds a chunk that is not there yet; its light is not computed. */
  add(x: number, z: number, version: number, own: boolean, sections: Section[]): LandChunk {
    const slot = this.freeSlots.pop() ?? this.chunks.size
    const chunk = new LandChunk(x, z, slot, version, own, sections)
    this.chunks.set(chunkKey(x, z), chunk)
    BESIDE.forEach(([dx, dz], side) => {
      const other = this.chunk(x + dx, z + dz)
      chunk.beside[side] = other
      if (other) other.beside[OPPOSITE[side] ?? 0] = chunk
    })
    return chunk
  }

  delete(chunk: LandChunk): void {
    this.chunks.delete(chunkKey(chunk.x, chunk.z))
    this.freeSlots.push(chunk.slot)
    chunk.beside.forEach((other, side) => {
      if (other) other.beside[OPPOSITE[side] ?? 0] = undefined
    })
  }

  /** Returns the chunk of a block and the block's index in it; null if there is none. */
  locate(x: number, y: number, z: number): { chunk: LandChunk; index: number } | null {
    const chunk = this.chunk(chunkOf(x), chunkOf(z))
    if (!chunk || y < 0 || y >= chunk.height) return null
    return { chunk, index: (y << 10) | (within(z) << 5) | within(x) }
  }
}
