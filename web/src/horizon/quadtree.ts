// Which tiles show the land around a place: small ones near it, wide ones farther away.

import { CELLS, LEVELS, SQUARE } from './tile'

export interface TileKey {
  level: number
  x: number
  z: number
}

/** How far the land reaches, in blocks. */
export const REACH = 2200
/** A tile that is nearer than this share of its width is divided. */
const DIVIDED = 0.7

export const nameOf = ({ level, x, z }: TileKey): string => `${level}.${x}.${z}`

/** Returns the width of a tile in blocks. */
export const sideOf = (level: number): number => (CELLS * SQUARE) << level

/** Returns the distance from a place to a tile, in blocks; 0 within it. */
export function distanceTo({ level, x, z }: TileKey, px: number, pz: number): number {
  const side = sideOf(level)
  return Math.hypot(Math.max(x * side - px, 0, px - (x + 1) * side), Math.max(z * side - pz, 0, pz - (z + 1) * side))
}

export function childrenOf({ level, x, z }: TileKey): TileKey[] {
  return [0, 1, 2, 3].map((i) => ({ level: level - 1, x: 2 * x + (i & 1), z: 2 * z + (i >> 1) }))
}

/** Returns the widest tiles within reach of a place. */
export function rootsAround(px: number, pz: number): TileKey[] {
  const level = LEVELS - 1
  const side = sideOf(level)
  const roots: TileKey[] = []
  for (let z = Math.floor((pz - REACH) / side); z * side < pz + REACH; z++) {
    for (let x = Math.floor((px - REACH) / side); x * side < px + REACH; x++) {
      const root = { level, x, z }
      if (distanceTo(root, px, pz) < REACH) roots.push(root)
    }
  }
  return roots
}

export function isDivided(key: TileKey, px: number, pz: number): boolean {
  return key.level > 0 && distanceTo(key, px, pz) < DIVIDED * sideOf(key.level)
}

/** Returns the tiles around a place, the nearest first. */
export function tilesAround(px: number, pz: number): TileKey[] {
  const leaves: TileKey[] = []
  const visit = (key: TileKey): void => {
    if (isDivided(key, px, pz)) childrenOf(key).forEach(visit)
    else leaves.push(key)
  }
  rootsAround(px, pz).forEach(visit)
  return leaves
    .map((key) => ({ key, distance: distanceTo(key, px, pz) }))
    .sort((a, b) => a.distance - b.distance)
    .map(({ key }) => key)
}

/**
 * Chooses the tiles to show from those that are there, without overlaps: what is not there yet is shown by a wider tile, or by smaller
 * ones. Returns the names.
 */
export function chooseShown(px: number, pz: number, has: (name: string) => boolean): Set<string> {
  const shown = new Set<string>()
  const covers = (key: TileKey, split: boolean): boolean => {
    if (!split && has(nameOf(key))) return true
    return key.level > 0 && childrenOf(key).every((child) => covers(child, split && isDivided(child, px, pz)))
  }
  const show = (key: TileKey): void => {
    const split = isDivided(key, px, pz)
    if (has(nameOf(key)) && !(split && covers(key, true))) shown.add(nameOf(key))
    else if (key.level > 0) childrenOf(key).forEach(show)
  }
  rootsAround(px, pz).forEach(show)
  return shown
}
