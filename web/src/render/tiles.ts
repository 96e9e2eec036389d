// The block textures, drawn by code.

import { pick } from '../world/hash'
import { TILES } from '../world/block-table'

import {
  basalt,
  bevelled,
  bookshelf,
  bricks,
  coloured,
  door,
  ladder,
  marble,
  overgrow,
  planks,
  roofTiles,
  sandstone,
  smoothStone,
  straw,
  torch,
  trapdoor,
} from './building'
import { mipmapsOf } from './mipmaps'
import { Pixels, TILE, bright, cobbles, grain, mix, type Colour } from './pixels'
import {
  birchBark,
  cornflower,
  daisy,
  dandelion,
  deadBush,
  fern,
  foliage,
  grassBlades,
  needles,
  pineBark,
  poppy,
  reeds,
} from './plants'

const STONE: Colour = [128, 130, 134]
const DIRT: Colour = [137, 99, 67]
const GRASS: Colour = [100, 154, 64]
const SAND: Colour = [224, 211, 164]
const BARK: Colour = [110, 84, 53]
const WOOD: Colour = [186, 150, 96]
const BIRCH: Colour = [212, 190, 142]
const PINE: Colour = [138, 92, 58]
const SNOW: Colour = [240, 246, 252]

function stone(p: Pixels): Pixels {
  p.fill(STONE, 0.08, 0.1)
  for (let i = 0; i < 5; i++) {
    // short cracks with a lit lower edge
    const x0 = Math.floor(p.noise(i, 1) * TILE)
    const y0 = Math.floor(p.noise(i, 2) * TILE)
    const length = 2 + Math.floor(p.noise(i, 3) * 4)
    for (let k = 0; k < length; k++) {
      const y = y0 + (p.noise(i, k + 4) > 0.7 ? 1 : 0)
      p.shade(x0 + k, y, 0.82)
      p.shade(x0 + k, y + 1, 1.07)
    }
  }
  return p
}

function dirt(p: Pixels): Pixels {
  p.fill(DIRT, 0.18, 0.14)
  for (let i = 0; i < 7; i++) {
    const x = Math.floor(p.noise(i, 10) * TILE)
    const y = Math.floor(p.noise(i, 11) * TILE)
    p.set(x, y, bright([160, 140, 118], 0.9 + 0.2 * p.noise(i, 12)))
    p.shade(x, y + 1, 0.8)
  }
  return p
}

function grassTop(p: Pixels): Pixels {
  p.fill(GRASS, 0.15, 0.1)
  for (let i = 0; i < 26; i++) {
    // blades: a light pixel over a dark one
    const x = Math.floor(p.noise(i, 20) * TILE)
    const y = Math.floor(p.noise(i, 21) * TILE)
    p.shade(x, y, 1.14)
    p.shade(x, y + 1, 0.86)
  }
  return p
}

function fringe(p: Pixels, colour: Colour): Pixels {
  dirt(p)
  for (let x = 0; x < TILE; x++) {
    const depth = 2 + Math.floor(p.noise(x, 30) * 2.2 + 1.6 * grain(x, 0, 4, p.seed))
    for (let y = 0; y < depth; y++) {
      p.set(x, y, bright(colour, 0.9 + 0.22 * p.noise(x, 31 + y) - (y === depth - 1 ? 0.14 : 0)))
    }
    p.shade(x, depth, 0.72)
  }
  return p
}

function ore(p: Pixels, dark: Colour, light: Colour): Pixels {
  stone(p)
  const places: [x: number, y: number][] = [
    [3, 3],
    [10, 2],
    [12, 8],
    [5, 9],
    [9, 12],
    [2, 13],
  ]
  places.forEach(([cx, cy], i) => {
    const size = 2 + Math.floor(p.noise(i, 40) * 2)
    for (let j = 0; j < size; j++) {
      for (let k = 0; k < 3; k++) {
        if (p.noise(cx + k, cy * 17 + j) < 0.28) continue
        const x = cx + k - 1
        const y = cy + j - 1
        p.set(x, y, mix(dark, light, j === 0 ? 0.75 + 0.25 * p.noise(k, i) : 0.4 * p.noise(k, i + 9)))
        p.shade(x, y + 1, 0.78)
      }
    }
    p.set(cx, cy - 1, light)
  })
  return p
}

function logSide(p: Pixels): Pixels {
  return p.each((x, y) => {
    const ridge = grain(x, Math.floor(y / 8), 2, p.seed)
    const groove = (x + Math.floor(p.noise(0, y >> 2) * 1.5)) % 4 === 0 ? 0.72 : 1
    return bright(BARK, groove * (0.8 + 0.35 * ridge + 0.12 * p.noise(x, y)))
  })
}

function logTop(p: Pixels, bark: Colour, wood: Colour): Pixels {
  return p.each((x, y) => {
    const radius = Math.max(Math.abs(x - 7.5), Math.abs(y - 7.5))
    if (radius > 6.6) return bright(bark, 0.8 + 0.35 * p.noise(x, y))
    const ring = Math.floor(radius) % 2 === 0 ? 1 : 0.86
    return bright(wood, ring * (0.94 + 0.1 * p.noise(x, y)))
  })
}

function pebbles(p: Pixels, colours: readonly [Colour, ...Colour[]], cells: number, mortar: number): Pixels {
  return p.each((x, y) => {
    const { gap, which, near } = cobbles(x, y, cells, p.seed)
    const colour = pick(colours, p.noise(which, 50))
    if (gap < 1) return bright(colour, mortar)
    const light = 1.08 - 0.05 * near + 0.07 * (p.noise(x, y) - 0.5)
    return bright(colour, light * (0.92 + 0.16 * p.noise(which, 51)))
  })
}

function glass(p: Pixels): Pixels {
  for (let y = 0; y < TILE; y++) {
    for (let x = 0; x < TILE; x++) {
      const edge = x === 0 || y === 0 || x === 15 || y === 15
      const corner = (x < 2 || x > 13) && (y < 2 || y > 13)
      const streak = (x + y === 9 || x + y === 10 || x + y === 13) && x > 2 && x < 9 && y > 1 && y < 11
      if (edge || corner) p.set(x, y, bright([206, 230, 236], 0.9 + 0.1 * p.noise(x, y)))
      else if (streak) p.set(x, y, [236, 248, 252])
      else p.set(x, y, [206, 230, 236], 0)
    }
  }
  return p
}

function lamp(p: Pixels): Pixels {
  return p.each((x, y) => {
    const edge = Math.min(x, y, 15 - x, 15 - y)
    if (edge === 0) return bright([120, 84, 48], 0.9 + 0.2 * p.noise(x, y))
    if (edge === 1) return [172, 122, 66]
    const middle = Math.hypot(x - 7.5, y - 7.5) / 8
    const bars = x === 5 || x === 10 || y === 5 || y === 10 ? 0.9 : 1
    return bright(mix([255, 250, 222], [255, 196, 96], middle), bars)
  })
}

function cactusSide(p: Pixels): Pixels {
  return p.each((x, y) => {
    const rib = x % 4
    const tone = rib === 0 ? 0.68 : rib === 2 ? 1.12 : 0.95
    if (rib === 2 && (y + (x >> 2) * 3) % 5 === 0) return [226, 226, 190]
    return bright([72, 136, 58], tone * (0.94 + 0.12 * p.noise(x, y)))
  })
}

function cactusTop(p: Pixels): Pixels {
  return p.each((x, y) => {
    const radius = Math.max(Math.abs(x - 7.5), Math.abs(y - 7.5))
    const tone = radius > 6.6 ? 0.7 : Math.floor(radius) % 3 === 0 ? 1.12 : 0.96
    return bright([86, 150, 66], tone * (0.94 + 0.12 * p.noise(x, y)))
  })
}

function cobble(p: Pixels): Pixels {
  return pebbles(
    p,
    [
      [132, 134, 138],
      [116, 118, 122],
      [146, 147, 150],
    ],
    3,
    0.55,
  )
}

const RECIPES: Record<(typeof TILES)[number], (p: Pixels) => Pixels> = {
  unknown: (p) => p.each((x, y) => (((x >> 3) + (y >> 3)) % 2 === 0 ? [220, 60, 200] : [40, 30, 44])),
  stone,
  grass_top: grassTop,
  grass_side: (p) => fringe(p, GRASS),
  dirt,
  sand: (p) => p.fill(SAND, 0.08, 0.09),
  water: (p) =>
    p.each((x, y) => bright([52, 110, 196], 0.92 + 0.2 * grain(x, y * 2, 4, p.seed) + 0.05 * p.noise(x, y))),
  log_top: (p) => logTop(p, BARK, WOOD),
  log_side: logSide,
  leaves: (p) => foliage(p, [80, 142, 58], 0.16),
  snow: (p) => p.fill(SNOW, 0.03, 0.05),
  coal_ore: (p) => ore(p, [34, 34, 38], [74, 74, 80]),
  iron_ore: (p) => ore(p, [170, 118, 86], [232, 190, 160]),
  gold_ore: (p) => ore(p, [204, 150, 34], [255, 226, 96]),
  diamond_ore: (p) => ore(p, [52, 178, 186], [170, 250, 244]),
  gravel: (p) =>
    pebbles(
      p,
      [
        [138, 132, 128],
        [118, 112, 110],
        [156, 148, 140],
        [128, 116, 106],
      ],
      4,
      0.62,
    ),
  clay: (p) => p.fill([164, 170, 184], 0.04, 0.1),
  bedrock: (p) => p.each((x, y) => bright([84, 84, 88], 0.35 + (1.1 * Math.round(3 * grain(x, y, 2, p.seed))) / 3)),
  planks: (p) => planks(p, WOOD),
  cobble,
  glass,
  brick: (p) => bricks(p, [170, 82, 64], [178, 168, 156], 4),
  lamp,
  ice: (p) => {
    for (let y = 0; y < TILE; y++)
      for (let x = 0; x < TILE; x++) {
        const light = 0.92 + 0.18 * grain(x + y, y, 4, p.seed) + ((x - y) % 7 === 0 ? 0.05 : 0)
        p.set(x, y, bright([150, 196, 240], light), 209)
      }
    return p
  },
  snowy_grass_side: (p) => fringe(p, SNOW),
  cactus_top: cactusTop,
  cactus_side: cactusSide,
  birch_log_top: (p) => logTop(p, [214, 210, 198], [206, 180, 132]),
  birch_log_side: birchBark,
  birch_leaves: (p) => foliage(p, [116, 168, 76], 0.13),
  pine_log_top: (p) => logTop(p, [104, 70, 48], [176, 132, 86]),
  pine_log_side: pineBark,
  pine_leaves: (p) => needles(p, [54, 104, 76]),
  dry_leaves: (p) => foliage(p, [142, 150, 72], 0.2),
  tall_grass: (p) => grassBlades(p, [98, 152, 62], [124, 172, 76]),
  dry_grass: (p) => grassBlades(p, [160, 152, 80], [206, 188, 116]),
  fern,
  poppy,
  dandelion,
  cornflower,
  daisy,
  dead_bush: deadBush,
  reeds,
  stone_bricks: (p) => bricks(p, STONE, [92, 94, 98], 8),
  mossy_cobble: (p) => overgrow(cobble(p)),
  smooth_stone: smoothStone,
  sandstone,
  birch_planks: (p) => planks(p, BIRCH),
  pine_planks: (p) => planks(p, PINE),
  marble,
  basalt,
  terracotta: (p) => p.fill([166, 98, 70], 0.05, 0.08),
  roof_tiles: roofTiles,
  bookshelf: (p) => bookshelf(p, WOOD),
  straw_top: (p) => straw(p, true),
  straw: (p) => straw(p, false),
  iron_block: (p) => bevelled(p, [214, 216, 218]),
  gold_block: (p) => bevelled(p, [246, 206, 66]),
  diamond_block: (p) => bevelled(p, [104, 222, 218]),
  torch_top: (p) => torch(p, 15),
  torch: (p) => torch(p, 6),
  torch_end: (p) => torch(p, -9),
  wall_torch: (p) => torch(p, 2),
  ladder,
  door_top: (p) => door(p, WOOD, true),
  door: (p) => door(p, WOOD, false),
  pine_door_top: (p) => door(p, PINE, true),
  pine_door: (p) => door(p, PINE, false),
  trapdoor: (p) => trapdoor(p, WOOD, true),
  pine_trapdoor: (p) => trapdoor(p, PINE, false),
  sign: (p) => p.each((x, y) => bright([208, 178, 126], 0.93 + 0.12 * grain(x, y * 4, 16, p.seed))),
}

export const LAYERS = TILES.length + 48 // wool, concrete and glass

/** Pictures in place of tiles, by layer, and the edge of the largest. */
export interface Tiles {
  edge: number
  pictures: Map<number, { edge: number; pixels: Uint8ClampedArray }>
}

let chosen: Tiles = { edge: TILE, pictures: new Map() }

/** Draws these from now on; called before anything is drawn. */
export function useTiles(tiles: Tiles): void {
  chosen = tiles
}

/** Draws the tile of a layer: TILE × TILE RGBA, row 0 on top. */
export function drawTile(layer: number): Uint8ClampedArray {
  const picture = chosen.pictures.get(layer)
  if (picture)
    return picture.edge === TILE ? picture.pixels : (mipmapsOf(picture.pixels, picture.edge)[1] ?? picture.pixels)
  const name = TILES[layer]
  const p = new Pixels(name ? layer + 11 : layer - TILES.length + 79) // one that is added does not change the coloured ones
  return (name ? RECIPES[name](p) : coloured(p, layer - TILES.length)).data
}

/** Draws all tiles for a texture array, at each mipmap level from full size down to one pixel. */
export function drawAllTiles(): { edge: number; pixels: Uint8Array }[] {
  const levels: { edge: number; pixels: Uint8Array }[] = []
  for (let edge = chosen.edge; edge >= 1; edge >>= 1)
    levels.push({ edge, pixels: new Uint8Array(edge * edge * 4 * LAYERS) })
  for (let layer = 0; layer < LAYERS; layer++) {
    const { edge, pixels } = chosen.pictures.get(layer) ?? { edge: TILE, pixels: drawTile(layer) }
    const large = edge === chosen.edge ? pixels : enlarge(pixels, edge, chosen.edge)
    mipmapsOf(large, chosen.edge).forEach((pixels, level) => levels[level]?.pixels.set(pixels, layer * pixels.length))
  }
  return levels
}

function enlarge(pixels: Uint8ClampedArray, edge: number, to: number): Uint8ClampedArray {
  const larger = new Uint8ClampedArray(4 * to * to)
  for (let i = 0; i < to * to; i++) {
    const from = 4 * (Math.floor((Math.floor(i / to) * edge) / to) * edge + Math.floor(((i % to) * edge) / to))
    larger.set(pixels.subarray(from, from + 4), 4 * i)
  }
  return larger
}
