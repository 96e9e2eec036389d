// The land behind the title screen: a few chunks of an island, made here, because nobody has joined a world yet.

import { SECTION_BLOCKS, SIZE } from './coords'
import { hash } from '../render/pixels'
import { Chunk, type World } from './world'

const GRASS = 2
const DIRT = 3
const STONE = 1
const SAND = 4
const WATER = 5
const LOG = 6
const LEAVES = 7
const BIRCH_LOG = 24
const BIRCH_LEAVES = 25
const TALL_GRASS = 29
const FLOWERS = [32, 35, 34, 33] // poppy, daisy, cornflower, dandelion
const SEA = 22
const RADIUS = 4

function noise(x: number, z: number, seed: number): number {
  const x0 = Math.floor(x)
  const z0 = Math.floor(z)
  const smooth = (t: number) => t * t * (3 - 2 * t)
  const fx = smooth(x - x0)
  const fz = smooth(z - z0)
  const near = hash(x0, z0, seed) * (1 - fx) + hash(x0 + 1, z0, seed) * fx
  const far = hash(x0, z0 + 1, seed) * (1 - fx) + hash(x0 + 1, z0 + 1, seed) * fx
  return near * (1 - fz) + far * fz
}

function ground(x: number, z: number): number {
  const hills = noise(x / 30 + 5, z / 30, 3) ** 2 * 34 + noise(x / 13, z / 13, 4) * 8 + noise(x / 6, z / 6, 5) * 2
  const shore = Math.max(0, Math.hypot(x, z) - 40) * 0.3
  return Math.max(6, Math.min(2 * SIZE - 10, Math.floor(15 + hills - shore)))
}

/** Fills the world with the island; its middle is at (0, 0). */
export function raiseBackdrop(world: World): void {
  world.height = 2 * SIZE
  const chunks: Chunk[] = []
  for (let cz = -RADIUS; cz < RADIUS; cz++) {
    for (let cx = -RADIUS; cx < RADIUS; cx++) chunks.push(land(cx, cz))
  }
  const at = new Map(chunks.map((chunk) => [`${chunk.x},${chunk.z}`, chunk]))
  const put = (x: number, y: number, z: number, block: number) => {
    const chunk = at.get(`${Math.floor(x / SIZE)},${Math.floor(z / SIZE)}`)
    if (chunk && chunk.get(x & 31, y, z & 31) === 0) chunk.set(x & 31, y, z & 31, block)
  }
  const edge = RADIUS * SIZE - 3
  for (let z = -edge; z < edge; z += 1) {
    for (let x = -edge; x < edge; x += 1) {
      const top = ground(x, z)
      if (top > SEA + 1 && hash(x, z, 9) > 0.995 - 0.02 * noise(x / 20, z / 20, 8)) plantTree(put, x, top + 1, z)
    }
  }
  for (let z = -edge; z < edge; z += 1) {
    for (let x = -edge; x < edge; x += 1) {
      const top = ground(x, z)
      if (top > SEA + 1) put(x, top + 1, z, herb(x, z))
    }
  }
  for (const chunk of chunks) world.put(chunk)
}

function land(cx: number, cz: number): Chunk {
  const sections = [new Uint16Array(SECTION_BLOCKS), new Uint16Array(SECTION_BLOCKS)]
  const chunk = new Chunk(cx, cz, sections)
  for (let z = 0; z < SIZE; z++) {
    for (let x = 0; x < SIZE; x++) {
      const top = ground(cx * SIZE + x, cz * SIZE + z)
      const beach = top <= SEA + 1
      for (let y = 0; y <= Math.max(top, SEA); y++) {
        const block = y > top ? WATER : y === top ? (beach ? SAND : GRASS) : y > top - 3 ? (beach ? SAND : DIRT) : STONE
        chunk.set(x, y, z, block)
      }
    }
  }
  return chunk
}

/** Grass and drifts of flowers, or nothing. */
function herb(x: number, z: number): number {
  const bloom = noise(x / 9 + 40, z / 9, 15)
  const chance = hash(x, z, 16)
  if (chance < 1.2 * Math.max(0, bloom - 0.6)) return FLOWERS[Math.floor(4 * noise(x / 30, z / 30, 17))]
  return chance > 1 - 0.3 * noise(x / 12, z / 12, 18) ? TALL_GRASS : 0
}

type Put = (x: number, y: number, z: number, block: number) => void

function plantTree(put: Put, x: number, y: number, z: number): void {
  const birch = noise(x / 25, z / 25, 19) > 0.6
  const tall = 4 + Math.floor(hash(x, z, 12) * 3)
  for (let i = 0; i < tall; i++) put(x, y + i, z, birch ? BIRCH_LOG : LOG)
  for (let dy = -2; dy <= 1; dy++) {
    const wide = dy < 0 ? 2 : 1
    for (let dz = -wide; dz <= wide; dz++) {
      for (let dx = -wide; dx <= wide; dx++) {
        if (Math.abs(dx) === wide && Math.abs(dz) === wide && (dy >= 0 || hash(x + dx, z + dz, y + dy) > 0.6)) continue
        put(x + dx, y + tall + dy, z + dz, birch ? BIRCH_LEAVES : LEAVES)
      }
    }
  }
}
