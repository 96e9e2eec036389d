// The names of the block textures. A tile's index in TILES is its layer in the texture array; render/tiles.ts draws it.

export const TILES = [
  'unknown',
  'stone',
  'grass_top',
  'grass_side',
  'dirt',
  'sand',
  'water',
  'log_top',
  'log_side',
  'leaves',
  'snow',
  'coal_ore',
  'iron_ore',
  'gold_ore',
  'diamond_ore',
  'gravel',
  'clay',
  'bedrock',
  'planks',
  'cobble',
  'glass',
  'brick',
  'lamp',
  'ice',
  'snowy_grass_side',
  'cactus_top',
  'cactus_side',
  'birch_log_top',
  'birch_log_side',
  'birch_leaves',
  'pine_log_top',
  'pine_log_side',
  'pine_leaves',
  'dry_leaves',
  'tall_grass',
  'dry_grass',
  'fern',
  'poppy',
  'dandelion',
  'cornflower',
  'daisy',
  'dead_bush',
  'reeds',
] as const

export type Tile = (typeof TILES)[number]

export function layerOf(tile: Tile): number {
  return TILES.indexOf(tile)
}
