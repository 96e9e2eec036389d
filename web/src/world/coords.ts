// Sizes and coordinates. Chunks are columns of sections; a section has SIZE³ blocks.
// Within a section the index is y·1024 + z·32 + x, as in the chunk codec.

export const SIZE = 32
export const SECTION_BLOCKS = SIZE * SIZE * SIZE

/** Returns the chunk coordinate of a block coordinate, for all int32 values. */
export function chunkOf(block: number): number {
  return Math.floor(block / SIZE)
}

/** Returns a block coordinate relative to its chunk, 0 to 31. */
export function within(block: number): number {
  return ((block % SIZE) + SIZE) % SIZE
}

/** Returns the map key of a chunk: unique for chunk coordinates in [-2^26, 2^26), which fill a number's 53 bits and sign. */
export function chunkKey(x: number, z: number): number {
  return x * 2 ** 27 + (z + 2 ** 26)
}

/** Returns the map key of a block. */
export function blockKey(x: number, y: number, z: number): string {
  return `${x},${y},${z}`
}
