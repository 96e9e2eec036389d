// The light of the land. Sky light falls from above and loses only what the blocks on its way dim; sky light and block light
// spread in all directions and lose one level per step, and what the block entered dims. Missing chunks give no light.
//
// A new chunk is lit by itself, then light is exchanged with its neighbours. An edit darkens what the changed block lit,
// then spreads the light at the edge of the darkened part again: the result is the same as that of lighting everything anew.

import { SECTION_BLOCKS, SIZE } from '../world/coords'
import { COLUMNS, OPEN, type Bytes, type LandChunk } from './land'
import { GLOW, LOSS, OPAQUE_LOSS } from './tables'

const FULL = 15
const SKY = 4 // the shifts of the two kinds of light within a byte
const BLOCK = 0
type Shift = typeof SKY | typeof BLOCK

/** The light of each block that changed, before the change. The key is the chunk's slot · KEYS + the block's index. */
export type Changes = Map<number, { chunk: LandChunk; index: number; before: number }>
const KEYS = 2 ** 20

/** A queue of blocks, with a level each; reused. */
class Queue {
  readonly chunks: LandChunk[] = []
  readonly indices: number[] = []
  readonly levels: number[] = []

  push(chunk: LandChunk, index: number, level: number): void {
    this.chunks.push(chunk)
    this.indices.push(index)
    this.levels.push(level)
  }

  clear(): void {
    this.chunks.length = this.indices.length = this.levels.length = 0
  }
}

const removed = new Queue()
const spreading = new Queue()
let nextChunk: LandChunk
let nextIndex = 0

/** Finds the neighbour of a block at +x −x +z −z +y −y: nextChunk and nextIndex. Returns false if there is none. */
function step(chunk: LandChunk, index: number, direction: number): boolean {
  nextChunk = chunk
  switch (direction) {
    case 0:
      if ((index & 31) < 31) nextIndex = index + 1
      else return cross(chunk, 0, index - 31)
      return true
    case 1:
      if ((index & 31) > 0) nextIndex = index - 1
      else return cross(chunk, 1, index + 31)
      return true
    case 2:
      if ((index & 992) < 992) nextIndex = index + 32
      else return cross(chunk, 2, index - 992)
      return true
    case 3:
      if ((index & 992) > 0) nextIndex = index - 32
      else return cross(chunk, 3, index + 992)
      return true
    case 4:
      nextIndex = index + 1024
      return nextIndex < chunk.blocks.length * SECTION_BLOCKS
    default:
      nextIndex = index - 1024
      return nextIndex >= 0
  }
}

function cross(chunk: LandChunk, side: number, index: number): boolean {
  const other = chunk.beside[side]
  if (!other || index >= other.blocks.length * SECTION_BLOCKS) return false
  nextChunk = other
  nextIndex = index
  return true
}

/** Lights a chunk that was added to the land, and exchanges light with its neighbours. */
export function lightChunk(chunk: LandChunk): void {
  lightAlone(chunk)
  for (const shift of [SKY, BLOCK] as const) {
    for (let side = 0; side < 4; side++) exchange(chunk, side, shift)
    spread(shift, null)
  }
}

/** Removes the light that a chunk gave to its neighbours; called after it was deleted from the land. */
export function darkenAround(chunk: LandChunk): void {
  for (const shift of [SKY, BLOCK] as const) {
    chunk.beside.forEach((other, side) => {
      const height = Math.min(chunk.height, other?.height ?? 0)
      for (let at = 0; other && at < height * SIZE; at++) {
        const index = borderIndex(at >> 5, at & 31, side)
        const level = (chunk.lightAt(index) >> shift) & 15
        if (level > 1) darkenNeighbour(other, acrossBorder(index, side), level, shift, null)
      }
    })
    darken(shift, null)
    spread(shift, null)
  }
}

/** Returns the index of the i-th block of a layer along a side. */
function borderIndex(y: number, i: number, side: number): number {
  const along = side === 0 ? (i << 5) | 31 : side === 1 ? i << 5 : side === 2 ? 992 | i : i
  return (y << 10) | along
}

function acrossBorder(index: number, side: number): number {
  return side === 0 ? index - 31 : side === 1 ? index + 31 : side === 2 ? index - 992 : index + 992
}

/** Queues the blocks on both sides of a border whose light spreads across it. */
function exchange(chunk: LandChunk, side: number, shift: Shift): void {
  const other = chunk.beside[side]
  if (!other) return
  const height = Math.min(chunk.height, other.height)
  for (let y = 0; y < height; y++) {
    const a = chunk.light[y >> 5] ?? OPEN
    const b = other.light[y >> 5] ?? OPEN
    if (typeof a === 'number' && a === b) {
      y |= 31 // equal uniform light: go on with the next section
      continue
    }
    for (let i = 0; i < SIZE; i++) {
      const index = borderIndex(y, i, side)
      const beyond = acrossBorder(index, side)
      const lightA = typeof a === 'number' ? a : (a[index & 32767] ?? 0)
      const lightB = typeof b === 'number' ? b : (b[beyond & 32767] ?? 0)
      if (lightA === lightB) continue
      const here = (lightA >> shift) & 15
      const there = (lightB >> shift) & 15
      if (here > there) {
        if (here - (LOSS[other.block(beyond)] ?? 0) > there) spreading.push(chunk, index, here)
      } else if (there - (LOSS[chunk.block(index)] ?? 0) > here) spreading.push(other, beyond, there)
    }
  }
}

/**
 * Changes a block and updates the light of the land; changes collects the blocks whose light changed. Those that were
 * darkened and then lit as before are among them.
 */
export function setBlock(chunk: LandChunk, index: number, block: number, changes: Changes): void {
  const before = chunk.block(index)
  const dimsAlike = LOSS[before] === LOSS[block]
  if (dimsAlike && GLOW[before] === GLOW[block]) {
    chunk.setBlock(index, block)
    return
  }
  const top = index >> 10
  const bottom = dimsAlike ? top : changeColumn(chunk, index, block)
  chunk.setBlock(index, block)
  for (const shift of [SKY, BLOCK] as const) {
    for (let y = top; y >= (shift === SKY ? bottom : top); y--) {
      const at = (index & 1023) | (y << 10)
      const level = (chunk.lightAt(at) >> shift) & 15
      const source = sourceOf(chunk, at, shift)
      if (y < top && source === level) continue
      write(chunk, at, source, shift, changes)
      if (source < level) removed.push(chunk, at, level)
      if (source > 0) spreading.push(chunk, at, source)
    }
    for (let direction = 0; direction < 6; direction++) {
      if (step(chunk, index, direction)) spreading.push(nextChunk, nextIndex, 0)
    }
    darken(shift, changes)
    spread(shift, changes)
  }
}

/** Updates lowest and clear for a block that will change. Returns the lowest block whose direct light may change. */
function changeColumn(chunk: LandChunk, index: number, block: number): number {
  const y = index >> 10
  const column = index & 1023
  const lowest = chunk.lowest[column] ?? 0
  if (y < lowest - 1) return y // in the shade of another block
  let level = FULL
  let clear = chunk.height
  let at = clear - 1
  for (; at >= 0; at--) {
    const loss = LOSS[at === y ? block : chunk.block((at << 10) | column)] ?? 0
    if (loss === OPAQUE_LOSS) break
    level -= loss - 1
    if (level <= 0) break
    if (level === FULL) clear = at
  }
  chunk.clear[column] = clear
  chunk.lowest[column] = at + 1
  return Math.min(y, lowest, at + 1)
}

/** Returns the light that a block has from the open sky above it, or from itself. */
function sourceOf(chunk: LandChunk, index: number, shift: Shift): number {
  if (shift === BLOCK) return GLOW[chunk.block(index)] ?? 0
  const column = index & 1023
  const y = index >> 10
  if (y < (chunk.lowest[column] ?? 0)) return 0
  let level = FULL
  for (let at = (chunk.clear[column] ?? 0) - 1; at >= y; at--) {
    level -= (LOSS[chunk.block((at << 10) | column)] ?? 1) - 1
  }
  return level
}

function write(chunk: LandChunk, index: number, level: number, shift: Shift, changes: Changes | null): void {
  const before = chunk.lightAt(index)
  const after = (before & (shift === SKY ? 0x0f : 0xf0)) | (level << shift)
  if (after === before) return
  chunk.setLight(index, after)
  if (!changes) return
  const key = chunk.slot * KEYS + index
  if (!changes.has(key)) changes.set(key, { chunk, index, before })
}

/** Removes the light that came from the removed blocks, breadth first. Queues what may spread into the dark again. */
function darken(shift: Shift, changes: Changes | null): void {
  for (let at = 0; at < removed.indices.length; at++) {
    const chunk = removed.chunks[at]
    if (!chunk) break
    const level = removed.levels[at] ?? 0
    for (let direction = 0; direction < 6; direction++) {
      if (step(chunk, removed.indices[at] ?? 0, direction)) darkenNeighbour(nextChunk, nextIndex, level, shift, changes)
    }
  }
  removed.clear()
}

/** Darkens a block if its light may have come from a neighbour that had a level. */
function darkenNeighbour(chunk: LandChunk, index: number, level: number, shift: Shift, changes: Changes | null): void {
  const light = (chunk.lightAt(index) >> shift) & 15
  if (light === 0) return
  const source = sourceOf(chunk, index, shift)
  if (source < light && light <= level - (LOSS[chunk.block(index)] ?? 0)) {
    removed.push(chunk, index, light)
    write(chunk, index, source, shift, changes)
    if (source > 0) spreading.push(chunk, index, source)
  } else spreading.push(chunk, index, light)
}

/** Spreads the light of the queued blocks, breadth first. */
function spread(shift: Shift, changes: Changes | null): void {
  for (let at = 0; at < spreading.indices.length; at++) {
    const chunk = spreading.chunks[at]
    if (!chunk) break
    const index = spreading.indices[at] ?? 0
    const level = (chunk.lightAt(index) >> shift) & 15
    if (level < 2) continue
    for (let direction = 0; direction < 6; direction++) {
      if (!step(chunk, index, direction)) continue
      const onto = nextChunk
      const next = nextIndex
      const there = (onto.lightAt(next) >> shift) & 15
      if (there >= level - 1) continue
      const reaching = level - (LOSS[onto.block(next)] ?? 0)
      if (reaching <= there) continue
      write(onto, next, reaching, shift, changes)
      spreading.push(onto, next, reaching)
    }
  }
  spreading.clear()
}

// scratch space for one chunk, reused: a flat copy is several times faster to light than sections are
let losses = new Uint8Array(0)
let light = new Uint8Array(0)
let flat = new Int32Array(1 << 16)
let flatCount = 0

function pushFlat(index: number): void {
  if (flatCount === flat.length) {
    const grown = new Int32Array(flat.length * 2)
    grown.set(flat)
    flat = grown
  }
  flat[flatCount++] = index
}

/** Lights a chunk as if it had no neighbours. */
function lightAlone(chunk: LandChunk): void {
  let top = chunk.blocks.length // the number of sections up to the highest one that is not air
  while (top > 0 && chunk.blocks[top - 1] === 0) top--
  const end = top * SECTION_BLOCKS
  if (losses.length < end) {
    losses = new Uint8Array(end)
    light = new Uint8Array(end)
  }
  light.fill(0, 0, end)
  const glowing: number[] = [] // sections
  for (let s = 0; s < top; s++) {
    const section = chunk.blocks[s] ?? 0
    const from = s * SECTION_BLOCKS
    let glow = 0
    if (typeof section === 'number') {
      losses.fill(LOSS[section] ?? 0, from, from + SECTION_BLOCKS)
      glow = GLOW[section] ?? 0
    } else if (section instanceof Uint8Array) glow = setLosses(section, losses, from)
    else glow = setWideLosses(section, losses, from)
    if (glow > 0) glowing.push(s)
  }
  flatCount = 0
  seedSky(chunk, top * SIZE)
  spreadFlat(SKY, end)
  flatCount = 0
  for (const s of glowing) seedGlow(chunk, s)
  spreadFlat(BLOCK, end)
  let spills = false // block light reaches above the highest section: spread continues there
  for (let column = 0; column < COLUMNS && !spills && end > 0; column++) {
    spills = ((light[end - COLUMNS + column] ?? 0) & 15) > 1
  }
  for (let s = 0; s < chunk.blocks.length; s++) {
    chunk.light[s] = s < top ? compact(light.subarray(s * SECTION_BLOCKS, (s + 1) * SECTION_BLOCKS)) : OPEN
  }
  if (!spills) return
  for (let column = 0; column < COLUMNS; column++) spreading.push(chunk, end - COLUMNS + column, 0)
  spread(BLOCK, null)
}

// Two functions, one for each kind of array: a loop over both is several times slower. They set what each block of a section
// loses, and return 0 if none glows.
function setLosses(section: Uint8Array, to: Uint8Array, from: number): number {
  let glow = 0
  for (let i = 0; i < SECTION_BLOCKS; i++) {
    const block = section[i] ?? 0
    to[from + i] = LOSS[block] ?? 0
    glow |= GLOW[block] ?? 0
  }
  return glow
}

function setWideLosses(section: Uint16Array, to: Uint8Array, from: number): number {
  let glow = 0
  for (let i = 0; i < SECTION_BLOCKS; i++) {
    const block = section[i] ?? 0
    to[from + i] = LOSS[block] ?? 0
    glow |= GLOW[block] ?? 0
  }
  return glow
}

function compact(section: Uint8Array): Bytes {
  const first = section[0] ?? 0
  for (let i = 0; i < section.length; i++) if (section[i] !== first) return section.slice()
  return first
}

/** Lights every block under the open sky. Queues those from which light spreads. */
function seedSky(chunk: LandChunk, height: number): void {
  const { lowest, clear } = chunk
  const lossOf = losses // constants are faster
  const lightOf = light
  for (let column = 0; column < COLUMNS; column++) {
    let level = FULL
    let y = height - 1
    let full = height
    for (; y >= 0; y--) {
      const index = y * COLUMNS + column
      const loss = lossOf[index] ?? 0
      if (loss === OPAQUE_LOSS) break
      level -= loss - 1
      if (level <= 0) break
      if (level === FULL) full = y
      lightOf[index] = level << 4
    }
    lowest[column] = y + 1
    clear[column] = full
  }
  for (let column = 0; column < COLUMNS; column++) {
    const own = lowest[column] ?? 0
    const x = column & 31
    const z = column >> 5
    let darkTo = own // below, a neighbour is not fully lit by the sky
    if (x > 0) darkTo = Math.max(darkTo, clear[column - 1] ?? 0)
    if (x < 31) darkTo = Math.max(darkTo, clear[column + 1] ?? 0)
    if (z > 0) darkTo = Math.max(darkTo, clear[column - 32] ?? 0)
    if (z < 31) darkTo = Math.max(darkTo, clear[column + 32] ?? 0)
    for (let y = own; y < darkTo; y++) {
      const index = y * COLUMNS + column
      const level = (light[index] ?? 0) >> 4
      if (
        (x > 0 && gains(index - 1, level)) ||
        (x < 31 && gains(index + 1, level)) ||
        (z > 0 && gains(index - 32, level)) ||
        (z < 31 && gains(index + 32, level))
      )
        pushFlat(index)
    }
  }
}

function gains(index: number, level: number): boolean {
  return level - (losses[index] ?? 0) > (light[index] ?? 0) >> 4
}

function seedGlow({ blocks }: LandChunk, s: number): void {
  const section = blocks[s] ?? 0
  for (let i = 0; i < SECTION_BLOCKS; i++) {
    const glow = GLOW[typeof section === 'number' ? section : (section[i] ?? 0)] ?? 0
    if (glow === 0) continue
    const index = s * SECTION_BLOCKS + i
    light[index] = (light[index] ?? 0) | glow
    pushFlat(index)
  }
}

function spreadFlat(shift: Shift, end: number): void {
  for (let at = 0; at < flatCount; at++) {
    const index = flat[at] ?? 0
    const level = ((light[index] ?? 0) >> shift) & 15
    if (level < 2) continue
    if ((index & 31) < 31) reach(index + 1, level, shift)
    if ((index & 31) > 0) reach(index - 1, level, shift)
    if ((index & 992) < 992) reach(index + 32, level, shift)
    if ((index & 992) > 0) reach(index - 32, level, shift)
    if (index + 1024 < end) reach(index + 1024, level, shift)
    if (index >= 1024) reach(index - 1024, level, shift)
  }
}

function reach(next: number, level: number, shift: Shift): void {
  const reaching = level - (losses[next] ?? 0)
  const there = light[next] ?? 0
  if (reaching <= ((there >> shift) & 15)) return
  light[next] = (there & (shift === SKY ? 0x0f : 0xf0)) | (reaching << shift)
  pushFlat(next)
}
