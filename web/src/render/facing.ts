// Selects the quads of a section that can face the camera. About half of all faces point away from it; the GPU would cull
// them one by one, after processing their vertices. The mesher emits a section's faces grouped by direction, so that whole
// ranges can be skipped here; and within a direction by cell, so that so can cells that cannot be seen.

import { GROUPS } from '../mesh/mesher'
import { SIZE } from '../world/coords'

/** The directions are +x −x +y −y +z −z, and the two diagonals of plants. */
const PLANTS = 0b11000000
export const ALL_FACES = 0b11111111
/** Ranges with a gap of at most this many quads are merged: drawing the gap costs less than another draw call. */
const MAX_GAP = 24

/** Receives half-open ranges of quads. */
export interface Ranges {
  addRange(from: number, to: number): void
}

/** Returns the directions (bits) of a section's faces that can face the camera; (x, y, z): its low corner, relative to the camera. */
export function facesTowards(x: number, y: number, z: number): number {
  const along = (low: number) => (low < 0 ? 1 : 0) | (low + SIZE > 0 ? 2 : 0)
  return along(x) | (along(y) << 2) | (along(z) << 4) | PLANTS
}

/**
 * Adds the ranges of the quads of a section's part that have these directions and belong to these cells, both as bits. first is
 * the index of the part's first quad; see SectionMesh for starts.
 */
export function addRanges(to: Ranges, first: number, starts: Uint32Array, directions: number, cells: number): void {
  let from = 0
  let end = 0
  for (let group = 0; group < GROUPS; group++) {
    const start = starts[group] ?? 0
    const next = starts[group + 1] ?? 0
    if (start === next || !(directions & (1 << (group >> 3))) || !(cells & (1 << (group & 7)))) continue
    if (end > from && start - end > MAX_GAP) {
      to.addRange(first + from, first + end)
      from = start
    } else if (end === from) from = start
    end = next
  }
  if (end > from) to.addRange(first + from, first + end)
}
