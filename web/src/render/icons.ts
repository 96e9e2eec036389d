// Block icons for the HUD: the block's boxes in isometric projection, drawn from its tiles, or a flat picture. Icons are cached.

import { DOOR, FENCE, GATE, LADDER, PANE, PLANT, SIGN, STAIRS, TORCH } from '../world/block-table'
import { boxesOf, kindOf, type Box } from '../world/blocks'
import { context2D } from './canvas'
import { TILE } from './pixels'
import { drawTile } from './tiles'

type Vector = [x: number, y: number]
/** A part of a texture, in fractions of it. */
type Part = [u: number, v: number, wide: number, high: number]

const SIZE = 64
const FENCE_BOXES: readonly Box[] = [
  [0.05, 0, 0.4, 0.25, 1, 0.6],
  [0.2, 0.3, 0.45, 0.8, 0.5, 0.55],
  [0.2, 0.65, 0.45, 0.8, 0.85, 0.55],
  [0.75, 0, 0.4, 0.95, 1, 0.6],
]
const cache = new Map<number, string>()

/** Returns a data URL of the block's icon, SIZE × SIZE pixels. */
export function iconOf(block: number): string {
  let url = cache.get(block)
  if (!url) cache.set(block, (url = draw(block)))
  return url
}

function tileCanvas(tile: number, shade: number): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = TILE
  const context = context2D(canvas)
  const data = drawTile(tile)
  const image = context.createImageData(TILE, TILE)
  for (let i = 0; i < data.length; i++) image.data[i] = (data[i] ?? 0) * (i % 4 === 3 ? 1 : shade)
  context.putImageData(image, 0, 0)
  return canvas
}

/** Returns the boxes of the picture, from the back to the front. */
function boxesFor(block: number): readonly Box[] {
  const { shape } = kindOf(block)
  if (shape === STAIRS) return boxesOf(block + 1) // their low side is in front
  if (shape === SIGN || shape === GATE) return boxesOf(block + 3) // the broad side is in front
  return shape === FENCE ? FENCE_BOXES : boxesOf(block)
}

function draw(block: number): string {
  const kind = kindOf(block)
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = SIZE
  const context = context2D(canvas)
  context.imageSmoothingEnabled = false
  if (kind.shape === DOOR) {
    context.drawImage(tileCanvas(kind.top, 1), SIZE / 4, 0, SIZE / 2, SIZE / 2)
    context.drawImage(tileCanvas(kind.side, 1), SIZE / 4, SIZE / 2, SIZE / 2, SIZE / 2)
    return canvas.toDataURL()
  }
  if (kind.shape === TORCH) {
    context.drawImage(tileCanvas(kind.side, 1), 7, 6, 2, 10, SIZE / 2 - 6, 2, 12, SIZE - 4)
    return canvas.toDataURL()
  }
  if (kind.shape === PLANT || kind.shape === PANE || kind.shape === LADDER) {
    context.drawImage(tileCanvas(kind.side, 1), 4, 4, SIZE - 8, SIZE - 8)
    return canvas.toDataURL()
  }
  const half = SIZE / 2 - 3
  const rise = half / 2
  const tall = half * 1.12
  const top = 3
  if (kind.translucent) context.globalAlpha = 0.85
  for (const [x0, y0, z0, x1, y1, z1] of boxesFor(block)) {
    // x runs to the right and down, z to the left and down; (u, v) is the low corner of the face's texture
    const face = (
      right: Vector,
      down: Vector,
      x: number,
      y: number,
      z: number,
      tile: number,
      shade: number,
      part: Part,
    ) => {
      const [u, v, wide, high] = part.map((length) => length * TILE) as unknown as Part
      const left = SIZE / 2 + half * (x - z)
      context.setTransform(...right, ...down, left, top + rise * (x + z) + tall * (1 - y))
      context.drawImage(tileCanvas(tile, shade), u, v, wide, high, 0, 0, part[2], part[3])
    }
    face([half, rise], [-half, rise], x0, y1, z0, kind.top, 1, [x0, z0, x1 - x0, z1 - z0])
    face([half, rise], [0, tall], x0, y1, z1, kind.side, 0.82, [x0, 1 - y1, x1 - x0, y1 - y0])
    face([half, -rise], [0, tall], x1, y1, z1, kind.side, 0.62, [1 - z1, 1 - y1, z1 - z0, y1 - y0])
  }
  return canvas.toDataURL()
}
