// Draws points of land with their heights, lit from the north-west.

import { colourOf } from '../render/block-colour'
import { context2D } from '../render/canvas'

const SLOPE = 1.6 // how fast land gets lighter or darker with its slope
const MOST = 0.22 // how much lighter or darker it gets
const GROUND = 32 // land at this height has the colours of its blocks, higher land is lighter
const PER_BLOCK = 1 / 400

/** Returns how light land is at a height that rises so many blocks in a block towards the east, and towards the south. */
export function lightOf(height: number, east: number, south: number): number {
  return 1 + MOST * Math.tanh(SLOPE * (east + south)) + (height - GROUND) * PER_BLOCK
}

/** Returns a canvas with so many points along a side, a pixel each. Block and light of a point are null where nothing is known. */
export function drawPoints(
  side: number,
  pointAt: (x: number, z: number) => { block: number; light: number } | null,
): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = side
  const context = context2D(canvas)
  const image = context.createImageData(side, side)
  for (let i = 0; i < side * side; i++) {
    const point = pointAt(i % side, Math.floor(i / side))
    if (!point) continue
    const colour = colourOf(point.block)
    for (const c of [0, 1, 2] as const) image.data[4 * i + c] = colour[c] * point.light
    image.data[4 * i + 3] = 255
  }
  context.putImageData(image, 0, 0)
  return canvas
}
