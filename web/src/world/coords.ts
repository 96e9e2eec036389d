// Sizes and addresses. Chunks are columns of sections; a section is SIZE³ blocks.
// Within a section the index is y·1024 + z·32 + x, as in the chunk codec.

export const SIZE = 32
export const SECTION_BLOCKS = SIZE * SIZE * SIZE

/** Chunk coordinate that contains a block coordinate; works for all int32 values. */
export function chunkOf(block: number): number {
  return Math.floor(block / SIZE)
}

/** A block's place within its chunk, 0 to 31. */
export function within(block: number): number {
  return ((block % SIZE) + SIZE) % SIZE
}

/** Map key of a chunk: exact for chunk coordinates in [-2^26, 2^26), which just fill a number's 53 bits and its sign. */
export function chunkKey(x: number, z: number): number {
  return x * 2 ** 27 + (z + 2 ** 26)
}

/** Map key of a block. */
export function blockKey(x: number, y: number, z: number): string {
  return `${x},${y},${z}`
}
