// What is heard of the surroundings: water, wind, the hum of caves, and rain. Each is 0 to 1.

import { WATER, kindOf } from '../world/blocks'

export interface Ambience {
  water: number
  wind: number
  cave: number
  rain: number
}

export const SILENCE: Ambience = { water: 0, wind: 0, cave: 0, rain: 0 }

interface Blocks {
  readonly height: number
  get(x: number, y: number, z: number): number
}

const WATER_REACH = 8 // blocks around the ears, half as many up and down
const STRIDE = 2 // of the blocks that are searched
const MUCH_WATER = 60 // searched blocks that are water, of 405
const COLUMNS = [-5, 0, 5] // along x and z
const ROOF = 4 // opaque blocks above: thicker than that of a house
const CALM = 40 // the height up to which wind stays the same
const STORM = 110

/** Returns what is heard at a position while it rains so hard, 0 to 1. */
export function ambienceAt(blocks: Blocks, x: number, y: number, z: number, rain = 0): Ambience {
  const [bx, by, bz] = [Math.floor(x), Math.floor(y), Math.floor(z)]
  let open = 0
  let roofed = 0
  for (const dx of COLUMNS) {
    for (const dz of COLUMNS) {
      const roof = roofOver(blocks, bx + dx, by + 1, bz + dz)
      if (roof === 0) open++
      else if (roof >= ROOF) roofed++
    }
  }
  const columns = COLUMNS.length ** 2
  const height = Math.min(1, Math.max(0, (y - CALM) / (STORM - CALM)))
  return {
    water: Math.min(1, waterAround(blocks, bx, by, bz) / MUCH_WATER),
    wind: (open / columns) * (0.2 + 0.8 * height),
    cave: roofed === columns ? 1 : 0,
    rain: roofed === columns ? 0 : rain * (0.25 + (0.75 * open) / columns),
  }
}

/** Returns how many opaque blocks are above a position, at most ROOF. */
function roofOver(blocks: Blocks, x: number, y: number, z: number): number {
  let roof = 0
  for (; y < blocks.height && roof < ROOF; y++) if (kindOf(blocks.get(x, y, z)).opaque) roof++
  return roof
}

function waterAround(blocks: Blocks, x: number, y: number, z: number): number {
  let water = 0
  for (let dy = -WATER_REACH / 2; dy <= WATER_REACH / 2; dy += STRIDE)
    for (let dz = -WATER_REACH; dz <= WATER_REACH; dz += STRIDE)
      for (let dx = -WATER_REACH; dx <= WATER_REACH; dx += STRIDE)
        if (blocks.get(x + dx, y + dy, z + dz) === WATER) water++
  return water
}
