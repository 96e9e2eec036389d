// What can be seen through a cell of 16³ blocks: from each of its faces, the faces that one can reach through blocks that do not
// hide what is behind them. With it, the main thread finds the cells that can be seen (render/terrain-visibility.ts).

import { CELL, CELLS } from './cells'
import { WIDTH, type Volume } from './volume'

/** Faces as bits: +x −x +y −y +z −z. */
export const ALL_SIDES = 0b111111
/** The openings of a section without blocks: of each cell and each of its faces, the faces that can be seen from there. */
export const OPEN_CELLS = new Uint8Array(CELLS * 6).fill(ALL_SIDES)

const ROWS = CELL * CELL
const FULL_ROW = (1 << CELL) - 1
// reused: one bit per block for each row along x, at index y · CELL + z
const open = new Int32Array(ROWS) // not reached yet
const stack = new Int32Array(ROWS * CELL) // rows, and bits of them that were reached
const reached = new Int32Array(ROWS * CELL)

/** Returns the openings of a section's cells, see OPEN_CELLS. */
export function openingsOf({ hides }: Volume): Uint8Array {
  const openings = new Uint8Array(CELLS * 6)
  for (let cell = 0; cell < CELLS; cell++) {
    const x = (cell & 1) * CELL
    const z = ((cell >> 1) & 1) * CELL
    const y = (cell >> 2) * CELL
    let all = FULL_ROW
    for (let row = 0; row < ROWS; row++) {
      const hidden = hides[(y + (row >> 4) + 1) * WIDTH + z + (row & 15) + 1] ?? 0
      open[row] = ~(hidden >> x) & FULL_ROW
      all &= open[row] ?? 0
    }
    if (all === FULL_ROW) openings.fill(ALL_SIDES, cell * 6, cell * 6 + 6)
    else openCell(openings, cell * 6)
  }
  return openings
}

function openCell(openings: Uint8Array, at: number): void {
  for (let row = 0; row < ROWS; row++) {
    while (open[row]) {
      const sides = fill(row)
      for (let side = 0; side < 6; side++) {
        if (sides & (1 << side)) openings[at + side] = (openings[at + side] ?? 0) | sides
      }
    }
  }
}

/** Removes the open blocks that are connected to the lowest one of a row. Returns the faces of the cell that they touch. */
function fill(first: number): number {
  let sides = 0
  let depth = 0
  const push = (row: number, from: number) => {
    let bits = from & (open[row] ?? 0)
    if (bits === 0) return
    const within = open[row] ?? 0
    for (let before = 0; before !== bits;) {
      before = bits
      bits |= ((bits << 1) | (bits >> 1)) & within
    }
    open[row] = within & ~bits
    stack[depth] = row
    reached[depth++] = bits
  }
  push(first, (open[first] ?? 0) & -(open[first] ?? 0))
  while (depth > 0) {
    const row = stack[--depth] ?? 0
    const bits = reached[depth] ?? 0
    const y = row >> 4
    const z = row & 15
    if (bits >> (CELL - 1)) sides |= 1
    if (bits & 1) sides |= 2
    if (y === CELL - 1) sides |= 4
    else push(row + CELL, bits)
    if (y === 0) sides |= 8
    else push(row - CELL, bits)
    if (z === CELL - 1) sides |= 16
    else push(row + 1, bits)
    if (z === 0) sides |= 32
    else push(row - 1, bits)
  }
  return sides
}
