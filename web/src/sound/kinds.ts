// The kinds of sounds, and what blocks sound like.

import { AIR, WATER, kindOf } from '../world/blocks'

export type SoundKind = 'break' | 'place' | 'use' | 'step' | 'hit' | 'gift'
export type Material = 'stone' | 'soft' | 'leaves' | 'wood' | 'glass' | 'metal' | 'water'

const NAMES: [RegExp, Material][] = [
  [/^water$/i, 'water'],
  [/glass|^ice$|lamp/i, 'glass'],
  [/(iron|gold|diamond) block/i, 'metal'],
  [/log$|plank|fence|door|ladder|bookshelf|torch|sign/i, 'wood'],
  [/leaves|bush|reeds|fern|cactus|straw|(tall|dry) grass/i, 'leaves'],
  [/grass|dirt|sand$|snow|clay|gravel|wool/i, 'soft'],
]

/** Returns the material of a block; stone if it is none of the others. */
export function materialOf(block: number): Material {
  const { name, group } = kindOf(block)
  return NAMES.find(([names]) => names.test(name))?.[1] ?? (group === 'Plants' ? 'leaves' : 'stone')
}

/** Returns what the change of a block sounds like. */
export function soundOfChange(before: number, after: number): [SoundKind, Material] {
  if (kindOf(before).base === kindOf(after).base) return ['use', materialOf(after)] // a door
  return after === AIR || after === WATER ? ['break', materialOf(before)] : ['place', materialOf(after)]
}
