// Which of a section's quads can be seen from where the eyes are. Half of all faces are turned away; a graphics card
// throws them out one by one, after it has worked on their vertices. The mesher emits a section's faces direction by
// direction, so that whole ranges are left out here instead.

import { WORDS_PER_QUAD } from '../mesh/mesher'
import { SIZE } from '../world/coords'

/** +x −x +y −y +z −z, and the two diagonals of plants. */
const DIRECTIONS = 8
const PLANTS = 0b11000000
export const ALL_FACES = 0b11111111
/** A gap of so many quads is drawn along: another draw call costs more. */
const GAP = 24

/** A stretch of quads, half-open. */
export interface QuadRange {
  from: number
  to: number
}

/** The directions (bits) of a section's faces that can be turned to the eyes; x, y, z: its low corner, seen from them. */
export function facesTowards(x: number, y: number, z: number): number {
  const along = (low: number) => (low < 0 ? 1 : 0) | (low + SIZE > 0 ? 2 : 0)
  return along(x) | (along(y) << 2) | (along(z) << 4) | PLANTS
}

/** Where each direction's quads begin in a mesh, and where the last one's end: nine numbers. */
export function startsOf(words: Uint32Array): number[] {
  const starts = [0]
  for (let quad = 0; quad * WORDS_PER_QUAD < words.length; quad++) {
    const direction = (words[quad * WORDS_PER_QUAD] >> 18) & 7
    while (starts.length <= direction) starts.push(quad)
  }
  while (starts.length <= DIRECTIONS) starts.push(words.length / WORDS_PER_QUAD)
  return starts
}

/** The ranges of quads to draw for these directions. */
export function quadRangesOf(starts: number[], directions: number): QuadRange[] {
  const ranges: QuadRange[] = []
  for (let direction = 0; direction < DIRECTIONS; direction++) {
    const from = starts[direction]
    const to = starts[direction + 1]
    if (from === to || !(directions & (1 << direction))) continue
    const last = ranges.at(-1)
    if (last && from - last.to <= GAP) last.to = to
    else ranges.push({ from, to })
  }
  return ranges
}
