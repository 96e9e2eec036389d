// A volume is the mesher's input: the blocks and the light of one section with a margin of one block around it.

import { SIZE } from '../world/coords'
import { VOID } from '../world/world'
import { OPEN, type Land, type LandChunk } from './land'
import { LIQUID, LOSS, NONE, OCCLUDES, OPAQUE, PLANT, SHAPE } from './tables'

export const WIDTH = SIZE + 2
export const LAYER = WIDTH * WIDTH
/** The bit of shade that is set where a block causes ambient occlusion. */
export const OCCLUDING = 256

/** The block at (x, y, z) of the section is at index (y + 1)·LAYER + (z + 1)·WIDTH + x + 1. */
export interface Volume {
  blocks: Uint16Array
  /** The light of each block, as in Land, and OCCLUDING. */
  shade: Uint16Array
  /** One bit per block for each row along x, at index (y + 1)·WIDTH + z + 1: cubes and liquids, */
  faces: Int32Array
  /** plants, */
  plants: Int32Array
  /** and blocks that hide faces; */
  hides: Int32Array
  /** of the margin at the row's ends: bit 0 for x = −1, bit 1 for x = SIZE. */
  hidesEnds: Uint8Array
  /** The places of blocks of other shapes, also in the margin. */
  shapes: number[]
}

const FULL = 15 // levels of light
const OPAQUE_BIT = 1
const FACES_BIT = 2
const PLANT_BIT = 4
const SHAPE_BIT = 8
const FLAGS = new Uint16Array(65536).map(
  (_, id) => (OPAQUE[id] ? OPAQUE_BIT : 0) | bitOf(SHAPE[id] ?? 0) | (OCCLUDES[id] ? OCCLUDING : 0),
)

function bitOf(shape: number): number {
  return shape === NONE ? 0 : shape <= LIQUID ? FACES_BIT : shape === PLANT ? PLANT_BIT : SHAPE_BIT
}

export function newVolume(): Volume {
  return {
    blocks: new Uint16Array(WIDTH * LAYER),
    shade: new Uint16Array(WIDTH * LAYER),
    faces: new Int32Array(LAYER),
    plants: new Int32Array(LAYER),
    hides: new Int32Array(LAYER),
    hidesEnds: new Uint8Array(LAYER),
    shapes: [],
  }
}

/**
 * Copies section s of chunk (cx, cz) into a volume. Missing chunks and everything below the floor read as VOID, everything
 * above the ceiling as air; both are lit by the open sky.
 */
export function copyVolume(land: Land, { x: cx, z: cz }: LandChunk, s: number, to: Volume): void {
  for (let dz = -1; dz <= 1; dz++) {
    for (let dx = -1; dx <= 1; dx++) {
      const chunk = land.chunk(cx + dx, cz + dz)
      for (let dy = -1; dy <= 1; dy++) copyPart(chunk, s + dy, dx, dy, dz, to)
    }
  }
  markRows(to)
}

/** Copies the part of a section that is within the volume; (dx, dy, dz) is its offset in sections. */
function copyPart(chunk: LandChunk | undefined, s: number, dx: number, dy: number, dz: number, to: Volume): void {
  const outside = s < 0 || !chunk ? VOID : 0
  const blocks = outside ? VOID : (chunk?.blocks[s] ?? 0)
  const light = outside ? OPEN : (chunk?.light[s] ?? OPEN)
  const x0 = dx < 0 ? SIZE - 1 : 0 // the part's range within the section, half-open
  const x1 = dx > 0 ? 1 : SIZE
  const z0 = dz < 0 ? SIZE - 1 : 0
  const z1 = dz > 0 ? 1 : SIZE
  const y0 = dy < 0 ? SIZE - 1 : 0
  const y1 = dy > 0 ? 1 : SIZE
  for (let y = y0; y < y1; y++) {
    for (let z = z0; z < z1; z++) {
      const at = (dy * SIZE + y + 1) * LAYER + (dz * SIZE + z + 1) * WIDTH + dx * SIZE + 1
      const from = (y << 10) | (z << 5)
      if (typeof blocks === 'number') fill(to.blocks, blocks, at + x0, at + x1)
      else if (blocks instanceof Uint8Array) copyBytes(blocks, from + x0, to.blocks, at + x0, x1 - x0)
      else for (let x = x0; x < x1; x++) to.blocks[at + x] = blocks[from + x] ?? 0
      if (typeof light === 'number') fill(to.shade, light, at + x0, at + x1)
      else copyBytes(light, from + x0, to.shade, at + x0, x1 - x0)
    }
  }
}

/** Like array.fill, which is slow for a few numbers. */
function fill(array: Uint16Array, value: number, from: number, to: number): void {
  for (let i = from; i < to; i++) array[i] = value
}

function copyBytes(source: Uint8Array, from: number, to: Uint16Array, at: number, count: number): void {
  for (let i = 0; i < count; i++) to[at + i] = source[from + i] ?? 0
}

/** Computes the bits of the rows, and adds OCCLUDING to shade, from the blocks and the light. */
export function markRows({ blocks, shade, faces, plants, hides, hidesEnds, shapes }: Volume): void {
  shapes.length = 0
  let at = 0
  for (let row = 0; row < LAYER; row++) {
    let face = 0
    let plant = 0
    let hide = 0
    let ends = 0
    for (let x = -1; x <= SIZE; x++, at++) {
      const block = blocks[at] ?? 0
      if (block === 0) continue
      const flags = FLAGS[block] ?? 0
      if (flags & OCCLUDING) shade[at] = (shade[at] ?? 0) | OCCLUDING
      if (flags & SHAPE_BIT) shapes.push(at)
      if (x < 0) ends |= flags & OPAQUE_BIT
      else if (x === SIZE) ends |= (flags & OPAQUE_BIT) << 1
      else {
        hide |= (flags & OPAQUE_BIT) << x
        face |= ((flags & FACES_BIT) >> 1) << x
        plant |= ((flags & PLANT_BIT) >> 2) << x
      }
    }
    faces[row] = face
    plants[row] = plant
    hides[row] = hide
    hidesEnds[row] = ends
  }
  lightShapes(blocks, shade, shapes)
}

/** Lights the space of slabs and stairs, which no light enters, like the brightest block beside it. */
function lightShapes(blocks: Uint16Array, shade: Uint16Array, shapes: number[]): void {
  for (const at of shapes) {
    if ((LOSS[blocks[at] ?? 0] ?? 0) < FULL) continue
    let sky = 0
    let glow = 0
    for (const step of [1, -1, WIDTH, -WIDTH, LAYER, -LAYER]) {
      const beside = shade[at + step] ?? 0
      if ((LOSS[blocks[at + step] ?? 0] ?? 0) >= FULL) continue
      sky = Math.max(sky, beside & 0xf0)
      glow = Math.max(glow, beside & 15)
    }
    shade[at] = sky | glow
  }
}
