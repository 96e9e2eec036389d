// The properties of each block, from block-table.ts.

import { RUNS, SLAB } from './block-table'

/** See RUNS. */
export interface BlockRow {
  readonly shape: number
  readonly flags: number
  readonly light: number
  readonly group: number
  readonly layers: readonly [top: number, side: number, bottom: number]
  readonly state: number
}

/** By id. */
export const ROWS: readonly BlockRow[] = RUNS.split(' ').flatMap((run) => {
  const [count = 0, shape = 0, flags = 0, light = 0, group = 0, top = 0, side = 0, bottom = 0, state = 0] = run
    .split(',')
    .map(Number)
  return Array.from({ length: count }, (_, i): BlockRow => {
    const [states, layers] = shape < SLAB ? [0, i] : [i, 0]
    return {
      shape: shape + states,
      flags,
      light,
      group,
      layers: [top + layers, side + layers, bottom + layers],
      state: state + states,
    }
  })
})
