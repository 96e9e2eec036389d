// The textures of building materials and fittings, drawn by code.

import { pick } from '../world/hash'
import { Pixels, TILE, bright, cobbles, grain, mix, type Colour } from './pixels'

const TIMBER: Colour = [112, 82, 48]
const EMBER: Colour = [255, 208, 96]

/** The colours of wool, concrete and glass, in the order of block-table.ts. */
const COLOURS: readonly Colour[] = [
  [236, 238, 240],
  [160, 162, 160],
  [84, 88, 94],
  [34, 34, 40],
  [118, 76, 46],
  [176, 46, 40],
  [232, 122, 32],
  [246, 202, 58],
  [124, 188, 40],
  [84, 112, 36],
  [28, 140, 148],
  [92, 172, 220],
  [58, 70, 166],
  [124, 54, 172],
  [190, 74, 180],
  [238, 146, 172],
]

/** Draws the nth of wool, concrete and glass, 16 colours each. */
export function coloured(p: Pixels, nth: number): Pixels {
  const colour = COLOURS[nth & 15] ?? [0, 0, 0]
  if (nth >> 4 === 1) return p.fill(bright(colour, 0.92), 0.03, 0.05)
  if (nth >> 4 === 0) {
    return p.each((x, y) =>
      bright(colour, 0.88 + 0.1 * grain(x, y, 4, p.seed) + (((x >> 1) + y) % 4 < 2 ? 0.05 : -0.05) * p.noise(x, y)),
    )
  }
  for (let y = 0; y < TILE; y++) {
    for (let x = 0; x < TILE; x++) {
      const edge = Math.min(x, y, 15 - x, 15 - y) === 0
      const streak = (x + y === 9 || x + y === 13) && x > 2 && x < 10
      p.set(x, y, bright(colour, edge ? 0.8 : streak ? 1.3 : 1), edge ? 215 : 135)
    }
  }
  return p
}

export function planks(p: Pixels, wood: Colour): Pixels {
  return p.each((x, y) => {
    const board = y >> 2
    const offset = [3, 11, 6, 14][board]
    if ((y & 3) === 3) return bright(wood, 0.66)
    if (x === offset) return bright(wood, 0.72)
    const fibre = grain(x, y * 4, 4, p.seed + board)
    return bright(wood, (0.86 + 0.1 * p.noise(board, 60)) * (0.9 + 0.22 * fibre) + ((y & 3) === 0 ? 0.05 : 0))
  })
}

/** Draws courses of bricks, high pixels high and twice as wide. */
export function bricks(p: Pixels, colour: Colour, mortar: Colour, high: number): Pixels {
  const wide = 2 * high
  return p.each((x, y) => {
    const row = Math.floor(y / high)
    const shifted = x + (row % 2) * high
    if (y % high === high - 1 || shifted % wide === wide - 1) return bright(mortar, 0.9 + 0.14 * p.noise(x, y))
    const tone = 0.86 + 0.2 * p.noise((Math.floor(shifted / wide) % 2) + 2 * row, 70)
    return bright(colour, tone * (0.95 + 0.1 * p.noise(x, y)) + (y % high === 0 ? 0.06 : 0))
  })
}

export function overgrow(p: Pixels): Pixels {
  return p.each((x, y) => {
    const moss = grain(x, y, 4, p.seed + 3)
    return moss > 0.52 ? mix(p.get(x, y), bright([92, 124, 54], 0.8 + 0.4 * p.noise(x, y)), 0.75) : null
  })
}

export function smoothStone(p: Pixels): Pixels {
  p.fill([158, 160, 163], 0.04, 0.06)
  return p.each((x, y) => (Math.min(x, y, 15 - x, 15 - y) === 0 ? bright(p.get(x, y), 0.86) : null))
}

export function sandstone(p: Pixels): Pixels {
  return p.each((x, y) => {
    const layer = grain(0, y, 2, p.seed) + 0.3 * grain(x, y, 4, p.seed + 1)
    return bright([218, 202, 150], 0.84 + 0.16 * layer + 0.05 * p.noise(x, y) - (y % 8 === 7 ? 0.12 : 0))
  })
}

export function marble(p: Pixels): Pixels {
  return p.each((x, y) => {
    const vein = Math.abs(grain(x + y, y, 8, p.seed) + 0.4 * grain(x, y, 4, p.seed + 2) - 0.7)
    return bright([232, 230, 226], vein < 0.05 ? 0.82 : 0.97 + 0.04 * p.noise(x, y))
  })
}

export function basalt(p: Pixels): Pixels {
  return p.each((x, y) => {
    const column = x % 4 === 0 ? 0.66 : x % 4 === 1 ? 1.14 : 1
    return bright([70, 70, 78], column * (0.82 + 0.3 * grain(x >> 2, y, 4, p.seed) + 0.1 * p.noise(x, y)))
  })
}

export function roofTiles(p: Pixels): Pixels {
  return p.each((x, y) => {
    const row = y >> 2
    const along = (x + (row % 2) * 2) % 4
    const down = y & 3
    if (along === 0 || (down === 3 && along !== 2)) return bright([96, 40, 34], 0.9 + 0.15 * p.noise(x, y))
    return bright(
      [168, 74, 56],
      0.8 + 0.12 * down + 0.14 * p.noise((x + (row % 2) * 2) >> 2, row) - (down === 3 ? 0.1 : 0),
    )
  })
}

export function bookshelf(p: Pixels, wood: Colour): Pixels {
  const covers: [Colour, ...Colour[]] = [
    [176, 46, 40],
    [58, 70, 166],
    [84, 112, 36],
    [118, 76, 46],
    [124, 54, 172],
  ]
  return p.each((x, y) => {
    const down = y % 8
    if (down === 0 || down === 7 || x === 0 || x === 15) return bright(wood, down === 0 ? 0.96 : 0.7)
    const book = Math.floor((x - 1) / 2) + 8 * (y >> 3)
    if (down === 1 && p.noise(book, 5) > 0.6) return [46, 34, 26]
    return bright(pick(covers, p.noise(book, 4)), (x % 2 ? 1.05 : 0.8) * (down === 3 ? 1.3 : 1))
  })
}

export function straw(p: Pixels, ends: boolean): Pixels {
  return p.each((x, y) => {
    const { gap, which } = ends ? cobbles(x, y, 8, p.seed) : { gap: 1, which: x + 16 * (y >> 3) }
    const rope = !ends && (y === 4 || y === 11) ? 0.62 : 1
    return bright([212, 178, 76], rope * (gap < 0.5 ? 0.7 : 0.8 + 0.3 * p.noise(which, 3)))
  })
}

/** Draws a block of metal or gems: bevelled, with a sheen. */
export function bevelled(p: Pixels, colour: Colour): Pixels {
  return p.each((x, y) => {
    const edge = Math.min(x, y, 15 - x, 15 - y)
    if (edge === 0) return bright(colour, x === 15 || y === 15 ? 0.66 : 1.12)
    const sheen = (x + y) % 16 < 3 ? 1.12 : 1
    return bright(colour, sheen * (edge === 1 ? 0.9 : 0.96 + 0.04 * p.noise(x, y)))
  })
}

/** Draws a torch whose flame is at row flame; it fills the tile, since the shape is thin. */
export function torch(p: Pixels, flame: number): Pixels {
  return p.each((x, y) => {
    const down = y - flame
    if (down < 2) return mix([255, 244, 190], EMBER, down / 2 + 0.2 * p.noise(x, y))
    return bright(TIMBER, down === 2 ? 0.5 : 0.85 + 0.3 * p.noise(x, y))
  })
}

export function ladder(p: Pixels): Pixels {
  for (let y = 0; y < TILE; y++) {
    for (let x = 0; x < TILE; x++) {
      const rail = x === 2 || x === 3 || x === 12 || x === 13
      const rung = y % 4 === 1 || (y % 4 === 2 && x > 1 && x < 14)
      const shown = rail || (rung && x > 0 && x < 15)
      p.set(x, y, bright([158, 122, 72], rail ? 0.85 + 0.2 * p.noise(x, y) : y % 4 === 1 ? 1.1 : 0.75), shown ? 255 : 0)
    }
  }
  return p
}

/** Draws half of a door; the upper one has windows. */
export function door(p: Pixels, wood: Colour, upper: boolean): Pixels {
  p.each((x, y) => {
    const frame = x < 2 || x > 13 || (upper ? y < 2 : y > 13)
    const panel = x > 3 && x < 12 && x !== 7 && x !== 8 && y % 8 > 1 && y % 8 < 7
    const fibre = 0.92 + 0.16 * grain(x * 4, y, 4, p.seed)
    return bright(wood, fibre * (frame ? 1.05 : panel ? 0.7 : 0.92))
  })
  if (upper) {
    for (let y = 3; y < 9; y++) for (let x = 4; x < 12; x++) if (x !== 7 && x !== 8 && y !== 6) p.set(x, y, wood, 0)
  } else for (let y = 1; y < 4; y++) p.set(12, y, bright([210, 190, 120], y === 1 ? 1.1 : 0.8))
  return p
}

/** Boards in a frame with a bar across, through which one may see. */
export function trapdoor(p: Pixels, wood: Colour, open: boolean): Pixels {
  p.each((x, y) => {
    const frame = x < 3 || x > 12 || y < 3 || y > 12 || y === 7 || y === 8
    const seam = !frame && x % 3 === 0
    return bright(wood, (0.92 + 0.16 * grain(x * 4, y, 4, p.seed)) * (frame ? 1.03 : seam ? 0.62 : 0.82))
  })
  if (open) for (const y of [4, 5, 10, 11]) for (const x of [4, 5, 10, 11]) p.set(x, y, wood, 0)
  for (const x of [3, 4, 11, 12]) p.set(x, 1, [96, 98, 104]) // the hinges
  return p
}
