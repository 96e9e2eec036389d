// Turns a lit volume into the quads of one section: the visible faces of its blocks, and two crossed quads for each plant.
//
// A face is drawn where a block borders one that does not hide it. Neighbouring faces of the same kind with the same,
// uniform light are merged into one rectangle (greedy meshing). Faces with different light at their corners are not merged,
// so that shading stays smooth. Where there is no light at all, occlusion cannot be seen: such faces have the same at all
// corners, so that more of them merge. Rectangles do not cross the borders of cells of 16³ blocks, which are culled one by
// one. Sections that are far away have fewer quads: no face has different light at its corners, leaves are cubes of 2³ blocks,
// and one plant of four is left. A vertex is two uint32:
//
//   word 0: x:6 y:6 z:6 (0 to 32 within the section) | face:3 (+x −x +y −y +z −z, two diagonals) | corner:2 |
//           occlusion:2 | low:1 | water:1 | section:5 (its number within the chunk)
//   word 1: layer:8 | 0:2 | sky:6 | glow:6 (light, 0 to 60, four times the level) | 0:10 (but see shapes.ts)
//
// corner numbers (0,0) (1,0) (1,1) (0,1) in the face's own axes. low: the top of a liquid, slightly below the block's.
// water: the face of a liquid; of the opaque and the cutout pass, a face, or a plant, under water.
// A plant is two quads, faces 6 from (0, 0) to (1, 1) and 7 from (0, 1) to (1, 0) of x and z; corners 2 and 3 are its
// upper ones. For plants, low means that the wind moves the vertex: the upper ones, and on stacked plants the lower ones.
// A quad has four vertices, counter-clockwise from outside, drawn as triangles 0 1 2 and 0 2 3.

import { SIZE } from '../world/coords'
import { CELL, CELLS, cellOf } from './cells'
import { eachFace, findCubes } from './far-leaves'
import { OPEN_CELLS, openingsOf } from './openings'
import { meshShapes } from './shapes'
import { CUBE, LAYERS, LEAFY, LIQUID, MERGES, PASS, SHAPE } from './tables'
import { LAYER, OCCLUDING, WIDTH, type Volume } from './volume'

export const WORDS_PER_VERTEX = 2
export const WORDS_PER_QUAD = 4 * WORDS_PER_VERTEX

/** The quads of a pass are grouped by direction (0 to 7), and within it by cell. */
export const GROUPS = 8 * CELLS

/** The parts of a mesh, in the order in which they are drawn. */
export const PARTS = ['opaque', 'cutout', 'thicket', 'water'] as const

/** A section's vertices for the three passes. */
export interface SectionMesh {
  /** See openingsOf. */
  openings: Uint8Array
  /** Of each part, the index of each group's first quad, and the end of the last one: GROUPS + 1 numbers each. */
  starts: Uint32Array
  opaque: Uint32Array
  cutout: Uint32Array
  water: Uint32Array
  /** Faces between two leaf blocks, about half of a forest's faces: of the cutout pass, but drawn only nearby. */
  thicket: Uint32Array
}

const NONE = new Uint32Array(0)
/** The mesh of a section without blocks. */
export const NOTHING: SectionMesh = {
  openings: OPEN_CELLS,
  starts: new Uint32Array(PARTS.length * (GROUPS + 1)),
  opaque: NONE,
  cutout: NONE,
  water: NONE,
  thicket: NONE,
}

const STRIDE = [1, LAYER, WIDTH] // of x, y, z within a volume
const ROW_STEPS = [0, 0, WIDTH, -WIDTH, 1, -1] // from a row to the one that a face borders
const NO_OCCLUSION = 3
const DARK = 2 << 12 // the corners of a face without light
const CORNER_BITS = 14

class Quads {
  words = new Uint32Array(1 << 14)
  private groups = new Uint8Array((1 << 14) / WORDS_PER_QUAD)
  private used = 0

  /** Returns the index in words of a new quad of a direction; (x, y, z) is the block that has the face. */
  next(direction: number, x: number, y: number, z: number): number {
    const at = this.used
    this.used += WORDS_PER_QUAD
    if (this.used > this.words.length) {
      const { words, groups } = this
      this.words = new Uint32Array(words.length * 2)
      this.words.set(words)
      this.groups = new Uint8Array(groups.length * 2)
      this.groups.set(groups)
    }
    this.groups[at / WORDS_PER_QUAD] = direction * CELLS + cellOf(x, y, z)
    return at
  }

  /** Returns the quads in the order of their groups, and sets starts. */
  flush(starts: Uint32Array): Uint32Array {
    const quads = this.used / WORDS_PER_QUAD
    const { groups, words } = this
    for (let q = 0; q < quads; q++) {
      const next = (groups[q] ?? 0) + 1
      starts[next] = (starts[next] ?? 0) + 1
    }
    for (let g = 0; g < GROUPS; g++) starts[g + 1] = (starts[g + 1] ?? 0) + (starts[g] ?? 0)
    places.set(starts)
    const sorted = new Uint32Array(this.used)
    for (let q = 0; q < quads; q++) {
      const group = groups[q] ?? 0
      let to = (places[group] ?? 0) * WORDS_PER_QUAD
      places[group] = (places[group] ?? 0) + 1
      for (let i = q * WORDS_PER_QUAD, end = i + WORDS_PER_QUAD; i < end; i++) sorted[to++] = words[i] ?? 0
    }
    this.used = 0
    return sorted
  }
}
const places = new Uint32Array(GROUPS + 1)

// reused; each worker has its own
const opaque = new Quads()
const cutout = new Quads()
const water = new Quads()
const thicket = new Quads()
const corners = new Int32Array(4) // light and occlusion of the current face: occlusion:2 sky:6 glow:6
// the mergeable faces of one direction, by slice, v and u: one bit per face in rows, and its kind and corners in keys
const rows = new Int32Array(SIZE * SIZE)
const keys = new Int32Array(SIZE * SIZE * SIZE)

/** Returns the quads of a block's pass, see PASS. */
function passOf(block: number): Quads {
  const pass = PASS[block]
  return pass === 0 ? opaque : pass === 1 ? cutout : water
}

let stamp = 0 // the section's number, as bits of word 0

/** Meshes a volume, which is section s of a chunk; for being seen from afar, if near is false. */
export function meshSection(volume: Volume, s = 0, near = true): SectionMesh {
  stamp = s << 27
  const cubes = !near && findCubes(volume)
  for (let face = 0; face < 6; face++) {
    let slices = markFaces(volume, face, near)
    if (cubes) slices |= markCubes(volume, face)
    for (; slices !== 0; slices &= slices - 1) mergeSlice(face, 31 - Math.clz32(slices & -slices))
    meshShapes(volume, face, stamp, passOf, (next, u, v) => shadeCorners(volume.shade, next, u, v))
  }
  meshPlants(volume, near)
  const starts = new Uint32Array(PARTS.length * (GROUPS + 1))
  const flush = (quads: Quads, part: number) => quads.flush(startsOf(starts, part))
  return {
    openings: openingsOf(volume),
    starts,
    opaque: flush(opaque, 0),
    cutout: flush(cutout, 1),
    thicket: flush(thicket, 2),
    water: flush(water, 3),
  }
}

/** Returns the starts of a part. */
export function startsOf(starts: Uint32Array, part: number): Uint32Array {
  return starts.subarray(part * (GROUPS + 1), (part + 1) * (GROUPS + 1))
}

/**
 * Emits the faces of a direction that have different light at their corners, and enters the others into rows and keys. Returns the
 * slices that have such, as bits.
 */
function markFaces({ blocks, shade, faces, hides, hidesEnds }: Volume, face: number, near: boolean): number {
  const axis = face >> 1
  const negative = face & 1
  const stride = STRIDE[axis] ?? 0
  const out = negative ? -stride : stride
  const uStep = STRIDE[(axis + 1) % 3] ?? 0
  const vStep = STRIDE[(axis + 2) % 3] ?? 0
  const rowStep = ROW_STEPS[face] ?? 0
  let slices = 0 // those with mergeable faces, as bits
  for (let y = 0; y < SIZE; y++) {
    for (let z = 0; z < SIZE; z++) {
      const row = (y + 1) * WIDTH + z + 1
      const here = faces[row] ?? 0
      if (here === 0) continue
      let hidden = hides[row + rowStep] ?? 0
      if (face === 0) hidden = (hidden >>> 1) | (((hidesEnds[row] ?? 0) & 2) << 30)
      else if (face === 1) hidden = (hidden << 1) | ((hidesEnds[row] ?? 0) & 1)
      for (let left = here & ~hidden; left !== 0; left &= left - 1) {
        const x = 31 - Math.clz32(left & -left)
        const cell = row * WIDTH + x + 1
        const next = cell + out
        const block = blocks[cell] ?? 0
        const beyond = blocks[next] ?? 0
        if (beyond === block && MERGES[block]) continue
        if (!near && LEAFY[block]) continue
        const inner = (LEAFY[block] ?? 0) & (LEAFY[beyond] ?? 0)
        if (negative && (inner || beyond === block)) continue
        shadeCorners(shade, next, uStep, vStep)
        if (!near) flatten()
        const liquid = SHAPE[block] === LIQUID
        // of water whether it is low, of what is not seen through whether it is under water
        const wet = liquid ? blocks[cell + LAYER] !== block : SHAPE[beyond] === LIQUID && PASS[block] !== 2
        const slice = axis === 0 ? x : axis === 1 ? y : z
        const u = axis === 0 ? y : axis === 1 ? z : x
        const v = axis === 0 ? z : axis === 1 ? x : y
        const shaded = corners[0] ?? 0
        const kind = (block << 2) | (inner << 1) | (wet ? 1 : 0)
        if (shaded === corners[1] && shaded === corners[2] && shaded === corners[3]) {
          const at = slice * SIZE + v
          rows[at] = (rows[at] ?? 0) | (1 << u)
          keys[at * SIZE + u] = (kind << CORNER_BITS) | shaded
          slices |= 1 << slice
        } else emit(face, slice, u, v, 1, 1, kind)
      }
    }
  }
  return slices
}

/** Enters the faces of cubes of leaves into rows and keys. Returns their slices, as bits. */
function markCubes(volume: Volume, face: number): number {
  const axis = face >> 1
  const last = face & 1 ? 0 : 1
  let slices = 0
  eachFace(volume, face, (x, y, z, block, light, dense) => {
    const slice = last + (axis === 0 ? x : axis === 1 ? y : z)
    const u = axis === 0 ? y : axis === 1 ? z : x
    const v = axis === 0 ? z : axis === 1 ? x : y
    corners.fill((NO_OCCLUSION << 12) | ((light >> 4) << 8) | ((light & 15) << 2))
    flatten()
    const key = (block << (2 + CORNER_BITS)) | (corners[0] ?? 0)
    for (let at = slice * SIZE + v; at < slice * SIZE + v + 2; at++) {
      const free = (3 << u) & (dense ? -1 : ~(rows[at] ?? 0))
      for (let i = u; i < u + 2; i++) if (free & (1 << i)) keys[at * SIZE + i] = key
      rows[at] = (rows[at] ?? 0) | free
    }
    slices |= 1 << slice
  })
  return slices
}

/** Sets all corners to their mean, in steps of two levels of light. */
function flatten(): void {
  let occlusion = 0
  let sky = 0
  let glow = 0
  for (let i = 0; i < 4; i++) {
    const shade = corners[i] ?? 0
    occlusion += shade >> 12
    sky += (shade >> 6) & 63
    glow += shade & 63
  }
  corners.fill((((occlusion + 2) >> 2) << 12) | (level(sky) << 6) | level(glow))
}

function level(sum: number): number {
  return Math.min(60, ((sum + 16) >> 5) << 3)
}

/** Computes corners for the face whose outer block is at next; each corner is shaded by the four blocks that touch it. */
function shadeCorners(shade: Uint16Array, next: number, uStep: number, vStep: number): Int32Array {
  const own = shade[next] ?? 0
  const right = shade[next + uStep] ?? 0
  const left = shade[next - uStep] ?? 0
  const up = shade[next + vStep] ?? 0
  const down = shade[next - vStep] ?? 0
  const upRight = shade[next + uStep + vStep] ?? 0
  const upLeft = shade[next - uStep + vStep] ?? 0
  const downRight = shade[next + uStep - vStep] ?? 0
  const downLeft = shade[next - uStep - vStep] ?? 0
  if (((own | right | left | up | down | upRight | upLeft | downRight | downLeft) & 255) === 0) {
    return corners.fill(DARK)
  }
  corners[0] = shadeCorner(own, left, down, downLeft)
  corners[1] = shadeCorner(own, right, down, downRight)
  corners[2] = shadeCorner(own, right, up, upRight)
  corners[3] = shadeCorner(own, left, up, upLeft)
  return corners
}

function shadeCorner(own: number, u: number, v: number, diagonal: number): number {
  const shut = u & v & OCCLUDING
  const blocked = diagonal & OCCLUDING || shut
  const a = u & OCCLUDING ? own : u
  const b = v & OCCLUDING ? own : v
  const c = blocked ? own : diagonal
  const sky = ((own >> 4) & 15) + ((a >> 4) & 15) + ((b >> 4) & 15) + ((c >> 4) & 15)
  const glow = (own & 15) + (a & 15) + (b & 15) + (c & 15)
  const occlusion = NO_OCCLUSION - (((u & OCCLUDING) + (v & OCCLUDING) + (blocked & OCCLUDING)) >> 8)
  return (occlusion << 12) | (sky << 6) | glow
}

/** Merges the mergeable faces of a slice into rectangles, and emits them. */
function mergeSlice(face: number, slice: number): void {
  const first = slice * SIZE
  for (let v = 0; v < SIZE; v++) {
    let row = rows[first + v] ?? 0
    while (row !== 0) {
      const u = 31 - Math.clz32(row & -row)
      const key = keys[(first + v) * SIZE + u] ?? 0
      let width = 1
      while ((u + width) % CELL !== 0 && row & (1 << (u + width)) && keys[(first + v) * SIZE + u + width] === key)
        width++
      const bits = ((1 << width) - 1) << u
      row &= ~bits
      let height = 1
      grow: for (; (v + height) % CELL !== 0; height++) {
        const above = rows[first + v + height] ?? 0
        if ((above & bits) !== bits) break
        const from = (first + v + height) * SIZE + u
        for (let i = 0; i < width; i++) if (keys[from + i] !== key) break grow
        rows[first + v + height] = above & ~bits
      }
      corners.fill(key & ((1 << CORNER_BITS) - 1))
      emit(face, slice, u, v, width, height, key >>> CORNER_BITS)
    }
    rows[first + v] = 0
  }
}

/** Adds a quad; kind is block · 4 + inner · 2 + wet, see markFaces. */
function emit(face: number, slice: number, u: number, v: number, width: number, height: number, kind: number): void {
  const axis = face >> 1
  const block = kind >> 2
  const inner = kind & 2
  const wet = kind & 1
  const shape = SHAPE[block]
  const low = shape === LIQUID && wet
  const layer = LAYERS[3 * block + (face === 2 ? 0 : face === 3 ? 2 : 1)] ?? 0
  const fixed = stamp | (face << 18) | (shape === LIQUID || wet ? 1 << 26 : 0)
  const uShift = axis === 0 ? 6 : axis === 1 ? 12 : 0
  const vShift = axis === 0 ? 12 : axis === 1 ? 0 : 6
  const base = fixed | ((slice + (face & 1 ? 0 : 1)) << (6 * axis))
  const first = brightness(0) + brightness(2) < brightness(1) + brightness(3) ? 1 : 0 // split along the brighter diagonal
  const quads = inner ? thicket : shape === CUBE ? passOf(block) : water
  const at =
    axis === 0
      ? quads.next(face, slice, u, v)
      : axis === 1
        ? quads.next(face, v, slice, u)
        : quads.next(face, u, v, slice)
  const { words } = quads
  for (let i = 0; i < 4; i++) {
    // negative faces run in reverse, to stay counter-clockwise from outside
    const corner = face & 1 ? (first + 4 - i) & 3 : (first + i) & 3
    const right = corner === 1 || corner === 2
    // only the upper edge of a liquid is lowered
    const lowered = low && (face === 2 || (axis === 0 && right) || (axis === 2 && corner >= 2))
    const shade = corners[corner] ?? 0
    words[at + 2 * i] =
      base |
      ((u + (right ? width : 0)) << uShift) |
      ((v + (corner >= 2 ? height : 0)) << vShift) |
      (corner << 21) |
      ((shade >> 12) << 23) |
      (lowered ? 1 << 25 : 0)
    words[at + 2 * i + 1] = layer | (((shade >> 6) & 63) << 10) | ((shade & 63) << 16)
  }
}

function brightness(corner: number): number {
  const shade = corners[corner] ?? 0
  return (shade >> 12) * 20 + ((shade >> 6) & 63) + (shade & 63)
}

function meshPlants({ blocks, shade, plants }: Volume, near: boolean): void {
  for (let y = 0; y < SIZE; y++) {
    for (let z = 0; z < SIZE; z++) {
      const row = (y + 1) * WIDTH + z + 1
      for (let left = plants[row] ?? 0; left !== 0; left &= left - 1) {
        const x = 31 - Math.clz32(left & -left)
        if (!near && (plantHash(x, z) >>> 25) & 3) continue
        const cell = row * WIDTH + x + 1
        const block = blocks[cell] ?? 0
        let top = cell
        while (blocks[top] === block) top += LAYER
        const fixed = stamp | (SHAPE[blocks[top] ?? 0] === LIQUID ? 1 << 26 : 0)
        emitPlant(fixed, x, y, z, block, (shade[cell] ?? 0) & 255, blocks[cell - LAYER] === block)
      }
    }
  }
}

/** The hash by which the shader varies plants (growPlant in render/terrain-material.ts). */
function plantHash(x: number, z: number): number {
  let h = (Math.imul(x, 374761393) + Math.imul(z, 668265263)) | 0
  h = Math.imul(h ^ (h >>> 13), 1274126177)
  return h ^ (h >>> 16)
}

/** Adds a plant; fixed: the bits of word 0 that all its vertices have. */
function emitPlant(
  fixed: number,
  x: number,
  y: number,
  z: number,
  block: number,
  light: number,
  stacked: boolean,
): void {
  const shade = (LAYERS[3 * block + 1] ?? 0) | ((light >> 4) << 12) | ((light & 15) << 18) // four times the levels
  const quads = passOf(block)
  for (let face = 6; face < 8; face++) {
    const at = quads.next(face, x, y, z)
    const { words } = quads
    for (let corner = 0; corner < 4; corner++) {
      const far = corner === 1 || corner === 2 ? 1 : 0
      const up = corner >= 2 ? 1 : 0
      const moves = up || stacked ? 1 : 0
      words[at + 2 * corner] =
        fixed |
        (x + far) |
        ((y + up) << 6) |
        ((z + (face === 6 ? far : 1 - far)) << 12) |
        (face << 18) |
        (corner << 21) |
        ((moves ? NO_OCCLUSION : NO_OCCLUSION - 1) << 23) |
        (moves << 25)
      words[at + 2 * corner + 1] = shade
    }
  }
}
