// The block textures by name. A tile's index in TILES is its layer in the texture array; render/tiles.ts draws it.

import { TILES } from './block-table'

export type Tile = (typeof TILES)[number]

export function layerOf(tile: Tile): number {
  return TILES.indexOf(tile)
}
