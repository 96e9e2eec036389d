// Decides whether a block that a tool wants can be placed now.

import { AIR, isAimable, isReplaceable, kindOf } from '../world/blocks'
import { VOID } from '../world/world'
import type { Verdict, Wanted } from './work'

type At = (x: number, y: number, z: number) => boolean

/** What is known of the place. */
export interface Place {
  blocks: { get(x: number, y: number, z: number): number }
  /** What an edit of the player's makes of the block is not here yet. */
  isPending: At
  mayBuild: At
  isInReach: At
  /** Somebody is in what the block would fill. */
  isOccupied: (x: number, y: number, z: number, block: number) => boolean
  /** Other blocks than air, liquids and plants are replaced, too. */
  replaces: boolean
}

export function judge({ x, y, z, block, instead }: Wanted, place: Place): Verdict {
  const there = place.blocks.get(x, y, z)
  if (there === VOID || place.isPending(x, y, z)) return 'later'
  if (there === block) return 'there'
  if (instead !== undefined) {
    if (there !== instead) return 'skip'
  } else if (block === AIR) {
    if (!isAimable(there)) return 'there' // water stays
  } else if (!place.replaces && !isReplaceable(there)) return 'skip'
  if (!kindOf(there).breakable && there !== AIR) return 'skip'
  if (!place.mayBuild(x, y, z)) return 'skip'
  if (!place.isInReach(x, y, z)) return 'later'
  return place.isOccupied(x, y, z, block) ? 'later' : 'now'
}

/** Reports whether a block at (x, y, z) is in reach of eyes: its nearest point is so many blocks away, or less. */
export function isInReach(
  eyes: readonly [number, number, number],
  reach: number,
  x: number,
  y: number,
  z: number,
): boolean {
  const gap = (eye: number, low: number) => Math.max(low - eye, 0, eye - (low + 1))
  return Math.hypot(gap(eyes[0], x), gap(eyes[1], y), gap(eyes[2], z)) <= reach
}
