// Selects the quads of a section that can face the camera. About half of all faces point away from it; the GPU would cull
// them one by one, after processing their vertices. The mesher emits a section's faces grouped by direction, so that whole
// ranges can be skipped here.

import { WORDS_PER_QUAD } from '../mesh/mesher'
import { SIZE } from '../world/coords'

/** +x −x +y −y +z −z, and the two diagonals of plants. */
const DIRECTIONS = 8
const PLANTS = 0b11000000
export const ALL_FACES = 0b11111111
/** Ranges with a gap of at most this many quads are merged: drawing the gap costs less than another draw call. */
const MAX_GAP = 24

/** A half-open range of quads. */
export interface QuadRange {
  from: number
  to: number
}

/** Returns the directions (bits) of a section's faces that can face the camera; (x, y, z): its low corner, relative to the camera. */
export function facesTowards(x: number, y: number, z: number): number {
  const along = (low: number) => (low < 0 ? 1 : 0) | (low + SIZE > 0 ? 2 : 0)
  return along(x) | (along(y) << 2) | (along(z) << 4) | PLANTS
}

/** Returns the index of each direction's first quad in a mesh, and the end of the last direction: nine numbers. */
export function startsOf(words: Uint32Array): number[] {
  const starts = [0]
  for (let quad = 0; quad * WORDS_PER_QUAD < words.length; quad++) {
    const direction = ((words[quad * WORDS_PER_QUAD] ?? 0) >> 18) & 7
    while (starts.length <= direction) starts.push(quad)
  }
  while (starts.length <= DIRECTIONS) starts.push(words.length / WORDS_PER_QUAD)
  return starts
}

/** Returns the ranges of quads to draw for these directions. */
export function quadRangesOf(starts: number[], directions: number): QuadRange[] {
  const ranges: QuadRange[] = []
  for (let direction = 0; direction < DIRECTIONS; direction++) {
    const from = starts[direction] ?? 0
    const to = starts[direction + 1] ?? 0
    if (from === to || !(directions & (1 << direction))) continue
    const last = ranges.at(-1)
    if (last && from - last.to <= MAX_GAP) last.to = to
    else ranges.push({ from, to })
  }
  return ranges
}
