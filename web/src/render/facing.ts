// Selects the quads of a section that can be seen and can face the camera. About half of all faces point away from it; the GPU would cull
// them one by one, after processing their vertices. The mesher emits a section's faces grouped by direction, so that whole
// ranges can be skipped here; and within a direction by cell, so that so can cells that cannot be seen.

import { CELL, CELLS } from '../mesh/cells'
import { GROUPS } from '../mesh/mesher'

/** The directions are +x −x +y −y +z −z, and the two diagonals of plants. */
const PLANTS = 0b11000000
export const ALL_FACES = 0b11111111

/** Receives half-open ranges of quads. */
export interface Ranges {
  addRange(from: number, to: number): void
}

/** Returns the directions (bits) of a cell's faces that can face the camera; (x, y, z): its low corner, relative to the camera. */
export function facesTowards(x: number, y: number, z: number): number {
  const along = (low: number) => (low < 0 ? 1 : 0) | (low + CELL > 0 ? 2 : 0)
  return along(x) | (along(y) << 2) | (along(z) << 4) | PLANTS
}

/**
 * Adds the ranges of a section's part: of each cell, the quads that have the directions given for it, as bits. first is the index of the part's first
 * quad; see SectionMesh for starts.
 */
export function addRanges(to: Ranges, first: number, starts: Uint32Array, directions: ArrayLike<number>): void {
  let from = 0
  let end = 0
  for (let group = 0; group < GROUPS; group++) {
    const start = starts[group] ?? 0
    const next = starts[group + 1] ?? 0
    if (start === next || !((directions[group % CELLS] ?? 0) & (1 << Math.floor(group / CELLS)))) continue
    if (start !== end) {
      if (end > from) to.addRange(first + from, first + end)
      from = start
    }
    end = next
  }
  if (end > from) to.addRange(first + from, first + end)
}
