// The loaded chunks, as dense typed arrays (uniform sections are one number). Physics, ray casting and meshing read blocks
// here. There is one World, owned by the main thread.

import { SECTION_BLOCKS, SIZE, chunkKey, chunkOf, within } from './coords'
import type { Section } from './codec'

/** The block where no chunk is loaded; solid for bodies. */
export const VOID = 0xffff

export class Chunk {
  constructor(
    readonly x: number,
    readonly z: number,
    readonly sections: Section[],
  ) {}

  get(x: number, y: number, z: number): number {
    const section = this.sections[y >> 5] ?? 0
    if (typeof section === 'number') return section
    return section[((y & 31) << 10) | (z << 5) | x] ?? 0
  }

  set(x: number, y: number, z: number, block: number): void {
    let section = this.sections[y >> 5] ?? 0
    if (typeof section === 'number') {
      if (section === block) return
      section = this.sections[y >> 5] = new Uint16Array(SECTION_BLOCKS).fill(section)
    }
    section[((y & 31) << 10) | (z << 5) | x] = block
  }
}

/** Receives every change, to update meshes. */
export interface WorldListener {
  chunkChanged(chunk: Chunk): void
  chunkRemoved(chunk: Chunk): void
  /** Called only if before differs from after. */
  blockChanged(x: number, y: number, z: number, before: number, after: number): void
}

export class World {
  private chunks = new Map<number, Chunk>()
  private listeners: WorldListener[] = []
  /** The height in blocks: 32 · sections. */
  height = 128
  /** Takes changes that are not to be shown for now; returns false for others. Null: all are shown. */
  hold: ((x: number, y: number, z: number, block: number) => boolean) | null = null

  listen(listener: WorldListener): void {
    this.listeners.push(listener)
  }

  chunk(x: number, z: number): Chunk | undefined {
    return this.chunks.get(chunkKey(x, z))
  }

  get size(): number {
    return this.chunks.size
  }

  all(): IterableIterator<Chunk> {
    return this.chunks.values()
  }

  /** Adds or replaces a chunk; an identical one changes nothing. */
  put(chunk: Chunk): void {
    const before = this.chunk(chunk.x, chunk.z)
    if (before && !this.hold && sameSections(before.sections, chunk.sections)) return // what is held may not be what is shown
    this.chunks.set(chunkKey(chunk.x, chunk.z), chunk)
    for (const listener of this.listeners) listener.chunkChanged(chunk)
  }

  remove(x: number, z: number): void {
    const chunk = this.chunk(x, z)
    if (!chunk) return
    this.chunks.delete(chunkKey(x, z))
    for (const listener of this.listeners) listener.chunkRemoved(chunk)
  }

  clear(): void {
    for (const chunk of [...this.chunks.values()]) this.remove(chunk.x, chunk.z)
  }

  /** Removes chunks farther than distance (Chebyshev, in chunks) from chunk (cx, cz). */
  keepAround(cx: number, cz: number, distance: number): void {
    for (const chunk of [...this.chunks.values()]) {
      if (Math.max(Math.abs(chunk.x - cx), Math.abs(chunk.z - cz)) > distance) this.remove(chunk.x, chunk.z)
    }
  }

  /** Returns the block at a position: air above the ceiling, VOID below the floor and where no chunk is loaded. */
  get(x: number, y: number, z: number): number {
    if (y < 0) return VOID
    const chunk = this.chunk(chunkOf(x), chunkOf(z))
    if (!chunk) return VOID
    if (y >= chunk.sections.length * SIZE) return 0
    return chunk.get(within(x), y, within(z))
  }

  /** Sets a block. Returns false if its chunk is not loaded. */
  set(x: number, y: number, z: number, block: number): boolean {
    const chunk = this.chunk(chunkOf(x), chunkOf(z))
    if (!chunk || y < 0 || y >= chunk.sections.length * SIZE) return false
    if (this.hold?.(x, y, z, block)) return true
    const before = chunk.get(within(x), y, within(z))
    if (before === block) return true
    chunk.set(within(x), y, within(z), block)
    for (const listener of this.listeners) listener.blockChanged(x, y, z, before, block)
    return true
  }

  loaded(x: number, z: number): boolean {
    return this.chunk(chunkOf(x), chunkOf(z)) !== undefined
  }
}

function sameSections(a: Section[], b: Section[]): boolean {
  return a.length === b.length && a.every((section, s) => sameBlocks(section, b[s] ?? 0))
}

function sameBlocks(a: Section, b: Section): boolean {
  if (typeof a === 'number' || typeof b === 'number') return a === b
  return a.every((block, i) => block === b[i])
}
