// The quads of blocks that are no cubes: slabs, stairs, fences, torches, doors and so on. Each is a few boxes. A face of a box
// is left out if the block beside it hides it, or a box that touches it covers it.
//
// The words of a vertex are the mesher's, with the sixteenths of a block that are added to its place in word 1: of x in bits 22 to 25, of
// y in bits 26 to 29, and of z in bits 30, 31, 8 and 9.

import { DOOR, FENCE, FENCE_POST, GATE, LADDER, PANE, PANE_POST, SHAPE_BOXES, TRAPDOOR } from '../world/block-table'
import { SIZE } from '../world/coords'
import { CUBE, LAYERS, LIQUID, OPAQUE, SHAPE } from './tables'
import { LAYER, WIDTH, type Volume } from './volume'

const STEPS = [1, LAYER, WIDTH] // of x, y, z within a volume
const BESIDE = [1, -1, WIDTH, -WIDTH]
const WHOLE = 16 // sixteenths

type Box = readonly number[]

/** Where the quads of a pass are written. */
interface Quads {
  readonly words: Uint32Array
  next(direction: number, x: number, y: number, z: number): number
}

/** Adds the faces of one direction, +x −x +y −y +z −z. stamp: the section's number, as bits of word 0.
 * shadeFace returns the corners of a face (see mesher.ts) whose outer block is next. */
export function meshShapes(
  { blocks, shapes }: Volume,
  face: number,
  stamp: number,
  passOf: (block: number) => Quads,
  shadeFace: (next: number, uStep: number, vStep: number) => Int32Array,
): void {
  const axis = face >> 1
  const outward = face & 1 ? -1 : 1
  const [u, v] = [(axis + 1) % 3, (axis + 2) % 3]
  for (const cell of shapes) {
    const at = [(cell % WIDTH) - 1, Math.floor(cell / LAYER) - 1, (Math.floor(cell / WIDTH) % WIDTH) - 1]
    if (at.some((place) => place < 0 || place >= SIZE)) continue // in the margin
    const block = blocks[cell] ?? 0
    const beyond = cell + outward * (STEPS[axis] ?? 0)
    const boxes = boxesAt(blocks, cell)
    for (const box of boxes) {
      const plane = outward > 0 ? (box[axis + 3] ?? 0) : (box[axis] ?? 0)
      const outer = plane === (outward > 0 ? WHOLE : 0)
      const others = outer ? boxesAt(blocks, beyond) : boxes
      const touching = outer ? WHOLE - plane : plane
      if (outer && OPAQUE[blocks[beyond] ?? 0]) continue
      if (others.some((other) => other[outward > 0 ? axis : axis + 3] === touching && covers(other, box, u, v)))
        continue
      const corners = shadeFace(outer ? beyond : cell, STEPS[u] ?? 0, STEPS[v] ?? 0)
      const wet = SHAPE[blocks[beyond] ?? 0] === LIQUID
      const fixed = stamp | (face << 18) | (wet ? 1 << 26 : 0)
      const layer = LAYERS[3 * block + layerOf(blocks, cell, face)] ?? 0
      const quads = passOf(block)
      const first = quads.next(face, at[0] ?? 0, at[1] ?? 0, at[2] ?? 0)
      for (let i = 0; i < 4; i++) {
        const corner = face & 1 ? (4 - i) & 3 : i
        const right = corner === 1 || corner === 2
        const place = [0, 0, 0]
        place[axis] = plane
        place[u] = (right ? box[u + 3] : box[u]) ?? 0
        place[v] = (corner >= 2 ? box[v + 3] : box[v]) ?? 0
        const light = between(corners, (place[u] ?? 0) / WHOLE, (place[v] ?? 0) / WHOLE)
        const [x = 0, y = 0, z = 0] = place.map((part, i) => WHOLE * (at[i] ?? 0) + part)
        quads.words[first + 2 * i] =
          fixed | (x >> 4) | ((y >> 4) << 6) | ((z >> 4) << 12) | (corner << 21) | (light(12, 3) << 23)
        quads.words[first + 2 * i + 1] =
          layer |
          ((z & 12) << 6) |
          (light(6, 63) << 10) |
          (light(0, 63) << 16) |
          ((x & 15) << 22) |
          ((y & 15) << 26) |
          ((z & 3) << 30)
      }
    }
  }
}

/** Returns the boxes that are seen of the block in a cell; none if it is a cube, a liquid or a plant. */
function boxesAt(blocks: Uint16Array, cell: number): readonly Box[] {
  const block = blocks[cell] ?? 0
  const shape = SHAPE[block] ?? 0
  if (shape !== FENCE && shape !== PANE) return shape > CUBE ? (SHAPE_BOXES[shape] ?? []) : []
  const post = shape === FENCE ? FENCE_POST : PANE_POST
  const joined = [0, 1, 2, 3].filter((side) => joins(shape, blocks[cell + (BESIDE[side] ?? 0)] ?? 0))
  const arms = joined.length === 0 && shape === PANE ? [0, 1, 2, 3] : joined
  return [post, ...arms.map((side) => post + 1 + side)].flatMap((part) => SHAPE_BOXES[part] ?? [])
}

/** Reports whether a fence, or a pane, is joined to a block beside it. */
function joins(shape: number, beside: number): boolean {
  const other = SHAPE[beside] ?? 0
  return other === shape || other === CUBE || (other >= DOOR && other < (shape === FENCE ? TRAPDOOR : GATE))
}

/** Reports whether one box hides another's face where both touch; u and v: the face's axes. */
function covers(box: Box, other: Box, u: number, v: number): boolean {
  const within = (axis: number) =>
    (box[axis] ?? 0) <= (other[axis] ?? 0) && (box[axis + 3] ?? 0) >= (other[axis + 3] ?? 0)
  return within(u) && within(v)
}

/** Returns which of its three textures a block shows on a face: top, side, bottom. The upper half of a door shows its top's. */
function layerOf(blocks: Uint16Array, cell: number, face: number): number {
  const shape = SHAPE[blocks[cell] ?? 0] ?? 0
  if (shape >= DOOR && shape < GATE) return SHAPE[blocks[cell - LAYER] ?? 0] === shape ? 0 : 1
  return shape >= LADDER || face > 3 || face < 2 ? 1 : face === 2 ? 0 : 2
}

/** Returns the light and occlusion at a point of a face, from those at its corners: a function of their bits. */
function between(corners: Int32Array, u: number, v: number): (shift: number, mask: number) => number {
  const [a = 0, b = 0, c = 0, d = 0] = corners
  return (shift, mask) => {
    const part = (corner: number) => (corner >> shift) & mask
    return Math.round((part(a) * (1 - u) + part(b) * u) * (1 - v) + (part(d) * (1 - u) + part(c) * u) * v)
  }
}
