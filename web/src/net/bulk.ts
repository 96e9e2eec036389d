// The runs of a bulk edit, see nodemsg.Bulk: for each run of blocks of a chunk how far it begins behind the one before, how many blocks
// it has, what they are and what they become, as LEB128.

import { SIZE, within } from '../world/coords'
import type { BlockChange } from '../world/edits'
import { toHex } from './bytes'

/** Encodes changes of blocks of one chunk in hex. */
export function encodeRuns(changes: readonly BlockChange[]): string {
  const places = changes
    .map(({ x, y, z, before, after }) => ({ at: (y * SIZE + within(z)) * SIZE + within(x), before, after }))
    .sort((a, b) => a.at - b.at)
  const bytes: number[] = []
  const put = (value: number): void => {
    for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128)
    bytes.push(value)
  }
  let end = 0
  for (let i = 0; i < places.length;) {
    const first = places[i]
    if (!first) break
    let count = 1
    for (let next = places[i + count]; next?.at === first.at + count; next = places[i + count]) {
      if (next.before !== first.before || next.after !== first.after) break
      count++
    }
    put(first.at - end)
    put(count)
    put(first.before)
    put(first.after)
    end = first.at + count
    i += count
  }
  return toHex(Uint8Array.from(bytes))
}
