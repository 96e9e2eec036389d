// Turns a lit volume into the quads of one section: the visible faces of its blocks, and two crossed quads for each plant.
//
// A face is drawn where a block borders one that does not hide it. Neighbouring faces of the same kind with the same,
// uniform light are merged into one rectangle (greedy meshing). Faces with different light at their corners are not merged,
// so that shading stays smooth. A vertex is two uint32:
//
//   word 0: x:6 y:6 z:6 (0 to 32 within the section) | face:3 (+x −x +y −y +z −z, two diagonals) | corner:2 |
//           occlusion:2 | low:1 | water:1
//   word 1: layer:10 | sky:6 | glow:6 (light, 0 to 60, four times the level)
//
// corner numbers (0,0) (1,0) (1,1) (0,1) in the face's own axes. low: the top of a liquid, slightly below the block's.
// A plant is two quads, faces 6 from (0, 0) to (1, 1) and 7 from (0, 1) to (1, 0) of x and z; corners 2 and 3 are its
// upper ones. For plants, low means that the wind moves the vertex: the upper ones, and on stacked plants the lower ones.
// A quad has four vertices, counter-clockwise from outside, drawn as triangles 0 1 2 and 0 2 3.

import { SIZE } from '../world/coords'
import { BLOCKS_LIGHT, CROSS, CUBE, LAYERS, LEAFY, LIQUID, MERGES, NONE, OPAQUE, PASS, SHAPE } from './tables'
import { LAYER, MARGIN, WIDTH, type Volume } from './volume'

export const WORDS_PER_VERTEX = 2
export const WORDS_PER_QUAD = 4 * WORDS_PER_VERTEX

/** A section's vertices for the three passes, grouped by direction (0 to 7). */
export interface SectionMesh {
  opaque: Uint32Array
  cutout: Uint32Array
  water: Uint32Array
  /** Faces between two leaf blocks, about half of a forest's faces: of the cutout pass, but drawn only nearby. */
  thicket: Uint32Array
}

const STRIDE = [1, LAYER, WIDTH] // of x, y, z within a volume
const NO_OCCLUSION = 3

class Quads {
  private words = new Uint32Array(1 << 14)
  private used = 0

  add(quad: Uint32Array): void {
    if (this.used + WORDS_PER_QUAD > this.words.length) {
      const grown = new Uint32Array(this.words.length * 2)
      grown.set(this.words)
      this.words = grown
    }
    this.words.set(quad, this.used)
    this.used += WORDS_PER_QUAD
  }

  flush(): Uint32Array {
    const words = this.words.slice(0, this.used)
    this.used = 0
    return words
  }
}

// reused; each worker has its own
const opaque = new Quads()
const cutout = new Quads()
const water = new Quads()
const thicket = new Quads()
const quad = new Uint32Array(WORDS_PER_QUAD)
const corners = new Int32Array(4) // light and occlusion of the current face: glow:6 sky:6 occlusion:2
const mask = new Float64Array(SIZE * SIZE) // the mergeable faces of a slice: kind and light + 1; 0 for none
const origin: [number, number, number] = [0, 0, 0]

/** Returns the quads of a block's pass, see PASS. */
function passOf(block: number): Quads {
  const pass = PASS[block]
  return pass === 0 ? opaque : pass === 1 ? cutout : water
}

/** Meshes section s of the volume's chunk. */
export function meshSection(volume: Volume, light: Uint8Array, s: number): SectionMesh {
  if (s * SIZE < volume.height) {
    for (let face = 0; face < 6; face++) {
      for (let slice = 0; slice < SIZE; slice++) meshSlice(volume, light, s, face, slice)
    }
    meshPlants(volume, light, s)
  }
  return {
    opaque: opaque.flush(),
    cutout: cutout.flush(),
    water: water.flush(),
    thicket: thicket.flush(),
  }
}

function meshSlice(volume: Volume, light: Uint8Array, s: number, face: number, slice: number): void {
  const { blocks } = volume
  const axis = face >> 1
  const uAxis = (axis + 1) % 3
  const vAxis = (axis + 2) % 3
  const stride = STRIDE[axis] ?? 0
  const out = face & 1 ? -stride : stride
  const uStep = STRIDE[uAxis] ?? 0
  const vStep = STRIDE[vAxis] ?? 0
  const start = s * SIZE * LAYER + MARGIN * WIDTH + MARGIN + slice * stride
  let mergeable = false
  for (let v = 0; v < SIZE; v++) {
    for (let u = 0; u < SIZE; u++) {
      const at = v * SIZE + u
      mask[at] = 0
      const cell = start + u * uStep + v * vStep
      const block = blocks[cell] ?? 0
      if (SHAPE[block] === NONE || SHAPE[block] === CROSS) continue
      const next = cell + out
      const beyond = next < 0 ? -1 : (blocks[next] ?? 0)
      if (beyond < 0 || OPAQUE[beyond] || (beyond === block && MERGES[block])) continue
      const inner = (LEAFY[block] ?? 0) & (LEAFY[beyond] ?? 0)
      if (face & 1 && (beyond === block || inner)) continue
      shadeCorners(blocks, light, next, uStep, vStep)
      const low = SHAPE[block] === LIQUID && aboveIsNot(blocks, cell, block) ? 1 : 0
      if (corners[0] === corners[1] && corners[0] === corners[2] && corners[0] === corners[3]) {
        mask[at] = 1 + (block * 4 + inner * 2 + low) * 16384 + (corners[0] ?? 0)
        mergeable = true
      } else {
        emit(face, slice, u, v, 1, 1, block, low, inner)
      }
    }
  }
  if (mergeable) merge(face, slice)
}

function aboveIsNot(blocks: Uint16Array, cell: number, block: number): boolean {
  const above = cell + LAYER
  return above >= blocks.length || blocks[above] !== block
}

/** Computes corners for the face whose outer block is at next; each corner is shaded by the four blocks that touch it. */
function shadeCorners(blocks: Uint16Array, light: Uint8Array, next: number, uStep: number, vStep: number): void {
  const own = lightAt(light, next)
  for (let corner = 0; corner < 4; corner++) {
    const u = next + (corner === 1 || corner === 2 ? uStep : -uStep)
    const v = next + (corner >= 2 ? vStep : -vStep)
    const diagonal = u + v - next
    const uBlocked = blockedAt(blocks, u)
    const vBlocked = blockedAt(blocks, v)
    const shut = uBlocked === 1 && vBlocked === 1
    const diagonalBlocked = shut ? 1 : blockedAt(blocks, diagonal)
    const a = uBlocked ? own : lightAt(light, u)
    const b = vBlocked ? own : lightAt(light, v)
    const c = diagonalBlocked ? own : lightAt(light, diagonal)
    const sky = (own >> 4) + (a >> 4) + (b >> 4) + (c >> 4)
    const glow = (own & 15) + (a & 15) + (b & 15) + (c & 15)
    const occlusion = NO_OCCLUSION - uBlocked - vBlocked - diagonalBlocked
    corners[corner] = (occlusion << 12) | (sky << 6) | glow
  }
}

function blockedAt(blocks: Uint16Array, index: number): number {
  return index >= 0 && index < blocks.length ? (BLOCKS_LIGHT[blocks[index] ?? 0] ?? 0) : 0
}

/** Returns the light at an index; outside the volume it is that of the open sky. */
function lightAt(light: Uint8Array, index: number): number {
  return index >= 0 && index < light.length ? (light[index] ?? 0) : 0xf0
}

function merge(face: number, slice: number): void {
  for (let v = 0; v < SIZE; v++) {
    for (let u = 0; u < SIZE;) {
      const key = mask[v * SIZE + u] ?? 0
      if (key === 0) {
        u++
        continue
      }
      let width = 1
      while (u + width < SIZE && mask[v * SIZE + u + width] === key) width++
      let height = 1
      grow: for (; v + height < SIZE; height++) {
        for (let i = 0; i < width; i++) if (mask[(v + height) * SIZE + u + i] !== key) break grow
      }
      for (let j = 0; j < height; j++) mask.fill(0, (v + j) * SIZE + u, (v + j) * SIZE + u + width)
      corners.fill((key - 1) % 16384)
      const kind = Math.floor((key - 1) / 16384)
      emit(face, slice, u, v, width, height, kind >> 2, kind & 1, (kind >> 1) & 1)
      u += width
    }
  }
}

function emit(
  face: number,
  slice: number,
  u: number,
  v: number,
  width: number,
  height: number,
  block: number,
  low: number,
  inner: number,
): void {
  const axis = face >> 1
  const uAxis = (axis + 1) % 3
  const vAxis = (axis + 2) % 3
  const layer = LAYERS[3 * block + (face === 2 ? 0 : face === 3 ? 2 : 1)] ?? 0
  const liquid = SHAPE[block] === LIQUID ? 1 : 0
  const first = brightness(0) + brightness(2) < brightness(1) + brightness(3) ? 1 : 0 // split along the brighter diagonal
  for (let i = 0; i < 4; i++) {
    // negative faces run in reverse, to stay counter-clockwise from outside
    const corner = face & 1 ? (first + 4 - i) & 3 : (first + i) & 3
    origin[axis] = slice + (face & 1 ? 0 : 1)
    origin[uAxis] = u + (corner === 1 || corner === 2 ? width : 0)
    origin[vAxis] = v + (corner >= 2 ? height : 0)
    // only the upper edge of a liquid is lowered
    const lowered = low && (face === 2 || (axis === 0 && (corner === 1 || corner === 2)) || (axis === 2 && corner >= 2))
    const shade = corners[corner] ?? 0
    quad[2 * i] =
      (origin[0] |
        (origin[1] << 6) |
        (origin[2] << 12) |
        (face << 18) |
        (corner << 21) |
        ((shade >> 12) << 23) |
        ((lowered ? 1 : 0) << 25) |
        (liquid << 26)) >>>
      0
    quad[2 * i + 1] = (layer | (((shade >> 6) & 63) << 10) | ((shade & 63) << 16)) >>> 0
  }
  const pass = inner ? thicket : SHAPE[block] === CUBE ? passOf(block) : water
  pass.add(quad)
}

function brightness(corner: number): number {
  const shade = corners[corner] ?? 0
  return (shade >> 12) * 20 + ((shade >> 6) & 63) + (shade & 63)
}

function meshPlants({ blocks }: Volume, light: Uint8Array, s: number): void {
  for (let y = 0; y < SIZE; y++) {
    for (let z = 0; z < SIZE; z++) {
      const row = (s * SIZE + y) * LAYER + (MARGIN + z) * WIDTH + MARGIN
      for (let x = 0; x < SIZE; x++) {
        const block = blocks[row + x] ?? 0
        if (SHAPE[block] === CROSS) emitPlant(x, y, z, block, light[row + x] ?? 0, blocks[row + x - LAYER] === block)
      }
    }
  }
}

function emitPlant(x: number, y: number, z: number, block: number, light: number, stacked: boolean): void {
  const shade = ((LAYERS[3 * block + 1] ?? 0) | ((light >> 4) << 12) | ((light & 15) << 18)) >>> 0 // four times the levels
  for (let face = 6; face < 8; face++) {
    for (let corner = 0; corner < 4; corner++) {
      const far = corner === 1 || corner === 2 ? 1 : 0
      const up = corner >= 2 ? 1 : 0
      const moves = up || stacked ? 1 : 0
      quad[2 * corner] =
        ((x + far) |
          ((y + up) << 6) |
          ((z + (face === 6 ? far : 1 - far)) << 12) |
          (face << 18) |
          (corner << 21) |
          ((moves ? NO_OCCLUSION : NO_OCCLUSION - 1) << 23) |
          (moves << 25)) >>>
        0
      quad[2 * corner + 1] = shade
    }
    passOf(block).add(quad)
  }
}
