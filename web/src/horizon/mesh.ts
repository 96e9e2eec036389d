// Makes the mesh and the textures of a tile. It runs in the worker.

import { WATER } from '../world/blocks'
import { CELLS, POINTS, SQUARE, type Run, type Tile } from './tile'
import { triangulate } from './triangulation'

/** For each level: by how many blocks the mesh may differ from the land, and how many runs are shown. */
const ERRORS = [0.8, 1.6, 3]
const MOST_BUILT = [1500, 500, 250]
const SKIRT = 10 // blocks; twice as many for each level
/** Heights are in eighths of a block. */
export const HEIGHT_SCALE = 8
const WATER_SURFACE = 7 // eighths

export interface TileMesh {
  /** x and z in squares, y in eighths of a block, four numbers a vertex; the fourth is, of what is built, its side: 1 east, 2 south. */
  corners: Uint16Array
  /** The colour of what is built, four numbers a vertex; the fourth is 0 on the land, whose colour is in the texture. */
  colours: Uint8Array
  index: Uint16Array
  /** For each point, the colour; the fourth number is 255 for water. */
  surface: Uint8Array
  /** For each point, x and z of the normal, from −1 to 1 as 0 to 255. */
  normals: Uint8Array
  /** The number of runs of what is built, and the height of the highest block of them. */
  built: number
  highest: number
  low: number
  high: number // blocks
}

/** Three numbers for each block: its colour from above. */
export type Palette = Uint8Array

export function buildMesh(tile: Tile, palette: Palette): TileMesh {
  const { level, heights, blocks } = tile
  const tops = Float32Array.from(
    heights,
    (height, i) => height + (blocks[i] === WATER ? WATER_SURFACE / HEIGHT_SCALE : 1),
  )
  const triangles = triangulate(tops, ERRORS[level] ?? 0)
  const corners: number[] = []
  const colours: number[] = []
  const index: number[] = []
  const vertices = new Int32Array(POINTS * POINTS).fill(-1)
  const add = (x: number, y: number, z: number, colour: readonly number[] = LAND, sides = 0): number => {
    corners.push(x, Math.max(0, Math.round(y * HEIGHT_SCALE)), z, sides)
    colours.push(...colour)
    return corners.length / 4 - 1
  }
  const scale = 1 << level // squares from one point to the next
  const vertexOf = (point: number): number => {
    let vertex = vertices[point] ?? -1
    if (vertex < 0) {
      vertex = add((point % POINTS) * scale, tops[point] ?? 0, Math.floor(point / POINTS) * scale)
      vertices[point] = vertex
    }
    return vertex
  }
  for (const point of triangles) index.push(vertexOf(point))
  // what hangs from the edges hides the gaps between tiles
  for (const edge of EDGES) {
    const used = edge.filter((point) => (vertices[point] ?? -1) >= 0)
    let before: [number, number] | null = null
    for (const point of used) {
      const depth = (tops[point] ?? 0) - (SKIRT << level)
      const now: [number, number] = [
        vertexOf(point),
        add((point % POINTS) * scale, depth, Math.floor(point / POINTS) * scale),
      ]
      if (before) index.push(before[0], now[0], before[1], now[0], now[1], before[1])
      before = now
    }
  }
  const built = chooseBuilt(tile)
  for (const run of built) addBuilt(run, level, tops, palette, add, index)
  let low = Infinity
  let high = 0
  for (let i = 1; i < corners.length; i += 4) {
    low = Math.min(low, (corners[i] ?? 0) / HEIGHT_SCALE)
    high = Math.max(high, (corners[i] ?? 0) / HEIGHT_SCALE)
  }
  return {
    corners: Uint16Array.from(corners),
    colours: Uint8Array.from(colours),
    index: Uint16Array.from(index),
    surface: surfaceOf(blocks, palette),
    normals: normalsOf(tops, SQUARE << level),
    built: built.length,
    highest: built.reduce((most, { height }) => Math.max(most, height), 0),
    low,
    high,
  }
}

const LAND = [0, 0, 0, 0] as const
const EDGES = [
  Array.from({ length: POINTS }, (_, i) => i),
  Array.from({ length: POINTS }, (_, i) => i * POINTS),
  Array.from({ length: POINTS }, (_, i) => i * POINTS + CELLS),
  Array.from({ length: POINTS }, (_, i) => CELLS * POINTS + i),
]

/** Returns what is built and shown, the highest if there is too much. */
function chooseBuilt({ built, level }: Tile): Run[] {
  const most = MOST_BUILT[level] ?? 0
  return built.length <= most ? built : [...built].sort((a, b) => b.height - a.height).slice(0, most)
}

function addBuilt(
  { x, z, length, height, block }: Run,
  level: number,
  tops: Float32Array,
  palette: Palette,
  add: (x: number, y: number, z: number, colour: readonly number[], sides: number) => number,
  index: number[],
): void {
  const point = (z >> level) * POINTS + (x >> level)
  const ground = Math.min(...[point, point + 1, point + POINTS, point + POINTS + 1].map((p) => tops[p] ?? 0))
  const low = Math.min(ground, height) - (SQUARE << level) / 2
  const colour = [...palette.subarray(3 * block, 3 * block + 3), 255]
  if (colour.length < 4) return
  const v = [0, 1, 2, 3, 4, 5, 6, 7].map((i) =>
    add(x + (i & 1 ? length : 0), i & 4 ? height + 1 : low, z + (i & 2 ? 1 : 0), colour, i & 3),
  )
  for (const i of BOX) index.push(v[i] ?? 0)
}

// the four sides and the top of a box whose corners are numbered by bits: 1 east, 2 south, 4 above
const BOX = [4, 6, 5, 5, 6, 7, 0, 4, 1, 1, 4, 5, 2, 3, 6, 3, 7, 6, 0, 2, 4, 2, 6, 4, 1, 5, 3, 3, 5, 7]

function surfaceOf(blocks: Uint16Array, palette: Palette): Uint8Array {
  const surface = new Uint8Array(4 * blocks.length)
  blocks.forEach((block, i) => {
    surface.set(palette.subarray(3 * block, 3 * block + 3), 4 * i)
    surface[4 * i + 3] = block === WATER ? 255 : 0
  })
  return surface
}

function normalsOf(tops: Float32Array, step: number): Uint8Array {
  const normals = new Uint8Array(2 * tops.length)
  for (let z = 0; z < POINTS; z++) {
    for (let x = 0; x < POINTS; x++) {
      const at = (x: number, z: number) => tops[z * POINTS + x] ?? 0
      const west = Math.max(x - 1, 0)
      const east = Math.min(x + 1, CELLS)
      const north = Math.max(z - 1, 0)
      const south = Math.min(z + 1, CELLS)
      const nx = (at(west, z) - at(east, z)) / ((east - west) * step)
      const nz = (at(x, north) - at(x, south)) / ((south - north) * step)
      const length = Math.hypot(nx, 1, nz)
      const i = 2 * (z * POINTS + x)
      normals[i] = Math.round((nx / length) * 127.5 + 127.5)
      normals[i + 1] = Math.round((nz / length) * 127.5 + 127.5)
    }
  }
  return normals
}
