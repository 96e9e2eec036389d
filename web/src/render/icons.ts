// Block icons for the HUD: an isometric cube drawn from the block's tiles, or a plant's picture. Icons are cached.

import { kindOf } from '../world/blocks'
import { context2D } from './canvas'
import { TILE } from './pixels'
import { type Tile } from '../world/tiles'
import { drawTile } from './tiles'

const SIZE = 64
const cache = new Map<number, string>()

/** Returns a data URL of the block's icon, SIZE × SIZE pixels. */
export function iconOf(block: number): string {
  let url = cache.get(block)
  if (!url) cache.set(block, (url = draw(block)))
  return url
}

function tileCanvas(tile: Tile, shade: number): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = TILE
  const context = context2D(canvas)
  const data = drawTile(tile)
  const image = context.createImageData(TILE, TILE)
  for (let i = 0; i < data.length; i++) image.data[i] = (data[i] ?? 0) * (i % 4 === 3 ? 1 : shade)
  context.putImageData(image, 0, 0)
  return canvas
}

function draw(block: number): string {
  const kind = kindOf(block)
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = SIZE
  const context = context2D(canvas)
  context.imageSmoothingEnabled = false
  if (kind.shape === 'cross') {
    context.drawImage(tileCanvas(kind.side, 1), 4, 4, SIZE - 8, SIZE - 8)
    return canvas.toDataURL()
  }
  const half = SIZE / 2 - 3
  const rise = half / 2
  const tall = half * 1.12
  const step = 1 / TILE
  const top = 3
  const face = (a: number, b: number, c: number, d: number, x: number, y: number, tile: Tile, shade: number) => {
    context.setTransform(a * step, b * step, c * step, d * step, x, y)
    context.drawImage(tileCanvas(tile, shade), 0, 0, TILE, TILE)
  }
  if (kind.pass === 'water') context.globalAlpha = 0.85
  const middle = SIZE / 2
  face(half, rise, -half, rise, middle, top, kind.top, 1)
  face(half, rise, 0, tall, middle - half, top + rise, kind.side, 0.82)
  face(half, -rise, 0, tall, middle, top + 2 * rise, kind.side, 0.62)
  return canvas.toDataURL()
}
