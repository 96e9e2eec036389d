// Flat tables of block properties by id, so that the mesher's inner loops read bytes instead of objects.

import { ROWS } from '../world/block-rows'
import { CUBE, NONE } from '../world/block-table'
import { VOID } from '../world/world'

const IDS = 65536

export { CUBE, LIQUID, NONE, PLANT } from '../world/block-table'

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
export const LAYERS = new Uint16Array(IDS * 3)

for (const [id, { shape, flags, light, layers }] of ROWS.entries()) {
  const opaque = !(flags & 2)
  const leafy = (flags >> 3) & 1
  SHAPE[id] = shape
  OPAQUE[id] = OCCLUDES[id] = opaque ? 1 : 0
  GLOW[id] = light & 15
  LOSS[id] = opaque ? OPAQUE_LOSS : 1 + (light >> 4)
  PASS[id] = (flags >> 4) & 3
  MERGES[id] = opaque || leafy ? 0 : 1
  LEAFY[id] = leafy
  LAYERS.set(layers, 3 * id)
}
SHAPE[VOID] = NONE
OCCLUDES[VOID] = 0
