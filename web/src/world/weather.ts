// Whether it rains. It follows from the world and the time alone, so that all players see the same without a message.

import { hash } from './hash'

const SPELLS = 6 // in a day of the world
const DRY = 0.66 // below this it does not rain, from 0 to 1
const WET = 0.82 // above this it pours

/** Returns how hard it rains in a world, by its id, at a time in days of the world since 1970: 0 to 1. */
export function rainAt(world: string, days: number): number {
  const seed = parseInt(world.slice(0, 7), 16) || 0
  const spell = Math.floor(days * SPELLS)
  const part = days * SPELLS - spell
  const blend = part * part * (3 - 2 * part)
  const wet = hash(spell, 0, seed) * (1 - blend) + hash(spell + 1, 0, seed) * blend
  return Math.min(1, Math.max(0, (wet - DRY) / (WET - DRY)))
}
