// A section has eight cells, which are culled one by one: those are drawn whose faces can be seen.

export const CELL = 16
export const CELLS = 8

/** Returns the number of the cell of a block within its section; the bits x, z and y of the number tell which half. */
export function cellOf(x: number, y: number, z: number): number {
  return ((y >> 4) << 2) | ((z >> 4) << 1) | (x >> 4)
}
