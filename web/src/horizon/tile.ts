// Decodes surface tiles: the land as it looks from afar. The format is that of gameserver/horizon/tile.go.

/** Points along a side of a tile, both edges included. */
export const POINTS = 65
export const CELLS = POINTS - 1
/** Blocks along a side of a square on which something is built, and of the cells of tiles of level 0. */
export const SQUARE = 4
export const LEVELS = 3

const VERSION = 1
const MAX_HEIGHT = 1024
const MAX_BUILT = 4096

/** A row of squares along x with something of the same height on them. Its place is in squares from the corner of the tile. */
export interface Run {
  x: number
  z: number
  length: number
  height: number
  block: number
}

export interface Tile {
  level: number
  heights: Uint16Array
  blocks: Uint16Array
  built: Run[]
}

/** Decodes a tile; throws a RangeError if it is invalid. */
export function decodeTile(level: number, bytes: Uint8Array): Tile {
  let at = 0
  const upTo = (most: number): number => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++]
      if (byte === undefined || factor > 2 ** 28) throw new RangeError('the tile is cut off')
      value += (byte & 127) * factor
      if (byte < 128) break
    }
    if (value > most) throw new RangeError(`the tile has a ${value} where at most ${most} is allowed`)
    return value
  }
  if (upTo(255) !== VERSION) throw new RangeError('a tile of an unknown version')
  const heights = new Uint16Array(POINTS * POINTS)
  const blocks = new Uint16Array(POINTS * POINTS)
  for (let i = 0; i < heights.length; i++) {
    const zigzag = upTo(2 ** 21)
    const height = predict(heights, i) + (zigzag & 1 ? -(zigzag + 1) / 2 : zigzag / 2)
    if (height < 0 || height >= MAX_HEIGHT) throw new RangeError(`a point at height ${height}`)
    heights[i] = height
  }
  for (let i = 0; i < blocks.length; i++) blocks[i] = upTo(0xffff)
  const built: Run[] = []
  const side = CELLS << level
  let x = 0
  let z = 0
  for (let n = upTo(MAX_BUILT); n > 0; n--) {
    const rows = upTo(side)
    if (rows > 0) x = 0
    z += rows
    x += upTo(side)
    const run = { x, z, length: upTo(side), height: upTo(MAX_HEIGHT - 1), block: upTo(0xffff) }
    x += run.length
    if (run.length === 0 || x > side || z >= side) throw new RangeError('something is built beside the tile')
    built.push(run)
  }
  if (at !== bytes.length) throw new RangeError('the tile is too long')
  return { level, heights, blocks, built }
}

/** Returns the height of a point as a plane through the points before it has it. */
function predict(heights: Uint16Array, i: number): number {
  const west = heights[i - 1] ?? 0
  const north = heights[i - POINTS] ?? 0
  if (i < POINTS) return i === 0 ? 0 : west
  return i % POINTS === 0 ? north : west + north - (heights[i - POINTS - 1] ?? 0)
}
