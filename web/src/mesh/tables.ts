// Flat tables of block properties by id, so that the mesher's inner loops read bytes instead of objects.

import { KINDS, kindOf } from '../world/blocks'
import { layerOf } from '../world/tiles'
import { VOID } from '../world/world'

const IDS = 65536

export const NONE = 0
export const CUBE = 1
export const LIQUID = 2
export const CROSS = 3

export const SHAPE = new Uint8Array(IDS).fill(CUBE)
/** Hides the faces of neighbours. VOID does, so that there is no wall at the edge of the loaded land. */
export const OPAQUE = new Uint8Array(IDS).fill(1)
/** Causes ambient occlusion. VOID does not. */
export const OCCLUDES = new Uint8Array(IDS).fill(1)
export const GLOW = new Uint8Array(IDS)
/** Levels of light lost by entering the block, at least 1; OPAQUE_LOSS if no light enters. */
export const LOSS = new Uint8Array(IDS).fill(255)
export const OPAQUE_LOSS = 255
/** 0 opaque, 1 cutout, 2 water. */
export const PASS = new Uint8Array(IDS)
/** A face between two blocks of this id is not drawn at all. */
export const MERGES = new Uint8Array(IDS)
/** A face between two of these blocks is drawn once. */
export const LEAFY = new Uint8Array(IDS)
/** The texture layers of each id: top, side, bottom. */
export const LAYERS = new Uint16Array(IDS * 3).fill(layerOf('unknown'))

const SHAPES = { none: NONE, cube: CUBE, liquid: LIQUID, cross: CROSS }

for (let id = 0; id < KINDS.length; id++) {
  const kind = kindOf(id)
  SHAPE[id] = SHAPES[kind.shape]
  OPAQUE[id] = kind.opaque ? 1 : 0
  OCCLUDES[id] = kind.opaque ? 1 : 0
  GLOW[id] = kind.glow
  LOSS[id] = kind.opaque ? OPAQUE_LOSS : 1 + kind.dims
  PASS[id] = kind.pass === 'opaque' ? 0 : kind.pass === 'cutout' ? 1 : 2
  MERGES[id] = kind.opaque || kind.leafy ? 0 : 1
  LEAFY[id] = kind.leafy ? 1 : 0
  LAYERS[3 * id] = layerOf(kind.top)
  LAYERS[3 * id + 1] = layerOf(kind.side)
  LAYERS[3 * id + 2] = layerOf(kind.bottom)
}
SHAPE[VOID] = NONE
OCCLUDES[VOID] = 0
