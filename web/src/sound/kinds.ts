// The kinds of sounds, and what blocks sound like.

import type { SOUNDS } from '../world/block-table'
import { AIR, WATER, kindOf, usedBlock } from '../world/blocks'

export type SoundKind = 'break' | 'place' | 'use' | 'step' | 'hit' | 'gift'
export type Material = (typeof SOUNDS)[number]

export function materialOf(block: number): Material {
  return kindOf(block).sound
}

/** Returns what the change of a block sounds like. */
export function soundOfChange(before: number, after: number): [SoundKind, Material] {
  if (usedBlock(before) === after) return ['use', materialOf(after)] // opened, or closed
  return after === AIR || after === WATER ? ['break', materialOf(before)] : ['place', materialOf(after)]
}
