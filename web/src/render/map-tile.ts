// Draws tiles of the map: the colour of the block that is seen from above, lit from the north-west.

import { TILE_POINTS } from '../net/surroundings'
import { kindOf } from '../world/blocks'
import { context2D } from './canvas'
import type { Colour } from './pixels'
import { drawTile } from './tiles'

const SLOPE = 0.09 // how much lighter or darker a block of height makes
const STEEPEST = 4

const colours = new Map<number, Colour>()

/** Returns the mean colour of a block's top. */
export function colourOf(block: number): Colour {
  let colour = colours.get(block)
  if (!colour) colours.set(block, (colour = mean(drawTile(kindOf(block).top))))
  return colour
}

function mean(pixels: Uint8ClampedArray): Colour {
  const sum: [number, number, number] = [0, 0, 0]
  let weight = 0
  for (let i = 0; i < pixels.length; i += 4) {
    const alpha = pixels[i + 3] ?? 0
    weight += alpha
    for (const c of [0, 1, 2] as const) sum[c] += (pixels[i + c] ?? 0) * alpha
  }
  return weight > 0 ? [sum[0] / weight, sum[1] / weight, sum[2] / weight] : [0, 0, 0]
}

/** Returns a canvas of TILE_POINTS × TILE_POINTS pixels. */
export function drawMapTile(points: Uint16Array): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = TILE_POINTS
  const context = context2D(canvas)
  const image = context.createImageData(TILE_POINTS, TILE_POINTS)
  const heightAt = (x: number, z: number) => points[2 * (Math.max(z, 0) * TILE_POINTS + Math.max(x, 0))] ?? 0
  for (let z = 0; z < TILE_POINTS; z++) {
    for (let x = 0; x < TILE_POINTS; x++) {
      const at = z * TILE_POINTS + x
      const here = heightAt(x, z)
      // the first row and column have no neighbour in this tile: they are lit like the next ones
      const rise =
        heightAt(Math.max(x, 1), z) -
        heightAt(Math.max(x, 1) - 1, z) +
        heightAt(x, Math.max(z, 1)) -
        heightAt(x, Math.max(z, 1) - 1)
      const light = 1 + SLOPE * Math.max(-STEEPEST, Math.min(STEEPEST, rise)) + (here - 32) / 400
      const colour = colourOf(points[2 * at + 1] ?? 0)
      for (const c of [0, 1, 2] as const) image.data[4 * at + c] = colour[c] * light
      image.data[4 * at + 3] = 255
    }
  }
  context.putImageData(image, 0, 0)
  return canvas
}
