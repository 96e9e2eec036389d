// The properties of each block id: appearance, collision and light. The ids are the server's (package chunk;
// test/blocks.test.ts compares the two). Unknown ids are shown as magenta cubes.

import type { Tile } from './tiles'

/** A cross is a plant: two upright quads along the block's diagonals. */
type Shape = 'none' | 'cube' | 'liquid' | 'cross'
type Pass = 'opaque' | 'cutout' | 'water'

export interface BlockKind {
  readonly name: string
  /** The group of the inventory. */
  readonly group: string
  readonly shape: Shape
  readonly pass: Pass
  /** Stops bodies. */
  readonly solid: boolean
  /** Hides the faces of its neighbours, and stops light. */
  readonly opaque: boolean
  readonly placeable: boolean
  readonly breakable: boolean
  /** The light that the block emits, 0 to 15. */
  readonly glow: number
  /** Levels of light lost in this block, in addition to the one lost per step. */
  readonly dims: number
  /** For leaves: one face is drawn between two leafy blocks of any kind. */
  readonly leafy: boolean
  readonly top: Tile
  readonly side: Tile
  readonly bottom: Tile
}

type Tiles = [all: Tile] | [top: Tile, side: Tile, bottom: Tile]

function kind(name: string, tiles: Tiles, more: Partial<BlockKind> = {}): BlockKind {
  const [top, side, bottom] = tiles.length === 1 ? [tiles[0], tiles[0], tiles[0]] : tiles
  return {
    name,
    group: 'Nature',
    shape: 'cube',
    pass: 'opaque',
    solid: true,
    opaque: true,
    placeable: true,
    breakable: true,
    glow: 0,
    dims: 0,
    leafy: false,
    top,
    side,
    bottom,
    ...more,
  }
}

const THROUGH = { opaque: false, pass: 'cutout' } as const
const LEAFY = { ...THROUGH, dims: 1, leafy: true } as const

const BUILDING = { group: 'Building' } as const

function plant(name: string, tile: Tile): BlockKind {
  return kind(name, [tile], { ...THROUGH, group: 'Plants', shape: 'cross', solid: false })
}

/** By id. */
export const KINDS: readonly BlockKind[] = [
  kind('Air', ['unknown'], { shape: 'none', solid: false, opaque: false, placeable: false, breakable: false }),
  kind('Stone', ['stone']),
  kind('Grass', ['grass_top', 'grass_side', 'dirt']),
  kind('Dirt', ['dirt']),
  kind('Sand', ['sand']),
  kind('Water', ['water'], {
    shape: 'liquid',
    pass: 'water',
    solid: false,
    opaque: false,
    dims: 1,
  }),
  kind('Log', ['log_top', 'log_side', 'log_top']),
  kind('Leaves', ['leaves'], LEAFY),
  kind('Snow', ['snow']),
  kind('Coal ore', ['coal_ore']),
  kind('Iron ore', ['iron_ore']),
  kind('Gold ore', ['gold_ore']),
  kind('Diamond ore', ['diamond_ore']),
  kind('Gravel', ['gravel']),
  kind('Clay', ['clay']),
  kind('Bedrock', ['bedrock'], { placeable: false, breakable: false }),
  kind('Planks', ['planks'], BUILDING),
  kind('Cobble', ['cobble'], BUILDING),
  kind('Glass', ['glass'], { ...BUILDING, ...THROUGH }),
  kind('Brick', ['brick'], BUILDING),
  kind('Lamp', ['lamp'], { ...BUILDING, glow: 15 }),
  kind('Ice', ['ice'], { opaque: false, pass: 'water', dims: 1 }),
  kind('Snowy grass', ['snow', 'snowy_grass_side', 'dirt']),
  kind('Cactus', ['cactus_top', 'cactus_side', 'cactus_top']),
  kind('Birch log', ['birch_log_top', 'birch_log_side', 'birch_log_top']),
  kind('Birch leaves', ['birch_leaves'], LEAFY),
  kind('Pine log', ['pine_log_top', 'pine_log_side', 'pine_log_top']),
  kind('Pine leaves', ['pine_leaves'], LEAFY),
  kind('Dry leaves', ['dry_leaves'], LEAFY),
  plant('Tall grass', 'tall_grass'),
  plant('Dry grass', 'dry_grass'),
  plant('Fern', 'fern'),
  plant('Poppy', 'poppy'),
  plant('Dandelion', 'dandelion'),
  plant('Cornflower', 'cornflower'),
  plant('Daisy', 'daisy'),
  plant('Dead bush', 'dead_bush'),
  plant('Reeds', 'reeds'),
]

const UNKNOWN = kind('Unknown', ['unknown'], { placeable: false, breakable: false })

export function kindOf(block: number): BlockKind {
  return KINDS[block] ?? UNKNOWN
}

export const AIR = 0
export const WATER = 5

/** The blocks of the inventory, in order. */
export const PLACEABLE: readonly number[] = KINDS.flatMap((kind, id) => (kind.placeable ? [id] : []))

/** Reports whether a block stops a body. VOID (not loaded, or below the floor) does. */
export function isSolid(block: number): boolean {
  return kindOf(block).solid
}

/** Reports whether a block can be aimed at. */
export function isAimable(block: number): boolean {
  const { shape } = kindOf(block)
  return shape === 'cube' || shape === 'cross'
}

export function isPlant(block: number): boolean {
  return kindOf(block).shape === 'cross'
}

/** A box within a block: its low and high corners. */
export type Box = readonly [x0: number, y0: number, z0: number, x1: number, y1: number, z1: number]

const WHOLE: Box = [0, 0, 0, 1, 1, 1]
const STALKS: Box = [0.15, 0, 0.15, 0.85, 0.8, 0.85]

/** Returns the part of a block that can be aimed at. */
export function boxOf(block: number): Box {
  return isPlant(block) ? STALKS : WHOLE
}

/** Reports whether placing a block may replace this one. */
export function isReplaceable(block: number): boolean {
  return kindOf(block).shape !== 'cube'
}
