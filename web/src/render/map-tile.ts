// Draws land from above: the colour of the block that is seen, lit from the north-west. Far land comes as tiles of the map; what is loaded is
// drawn block by block.

import { TILE_BLOCKS, TILE_POINTS, type Tile } from '../net/surroundings'
import { AIR, kindOf } from '../world/blocks'
import { SIZE, chunkOf, within } from '../world/coords'
import type { Chunk, World } from '../world/world'
import { context2D } from './canvas'
import type { Colour } from './pixels'
import { drawTile } from './tiles'

const SLOPE = 0.09 // how much lighter or darker a block of height makes
const STEEPEST = 4

/** Where land is drawn on a canvas. */
export interface MapFrame {
  /** The block at the left and top of the canvas. */
  x: number
  z: number
  /** Pixels of a block. */
  scale: number
}

const colours = new Map<number, Colour>()
const images = new WeakMap<Uint16Array, HTMLCanvasElement>() // of tiles, by their points

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

/** Draws the tiles that are in a frame of so many pixels along a side. */
export function drawTiles(
  context: CanvasRenderingContext2D,
  tiles: ReadonlyMap<string, Tile>,
  { x, z, scale }: MapFrame,
  side: number,
): void {
  context.imageSmoothingEnabled = false
  for (const tile of tiles.values()) {
    const left = Math.round((tile.x * TILE_BLOCKS - x) * scale)
    const top = Math.round((tile.z * TILE_BLOCKS - z) * scale)
    const right = Math.round(((tile.x + 1) * TILE_BLOCKS - x) * scale)
    const bottom = Math.round(((tile.z + 1) * TILE_BLOCKS - z) * scale)
    if (left > side || top > side || right < 0 || bottom < 0) continue
    let image = images.get(tile.points)
    if (!image) {
      const { points } = tile
      image = drawPoints(TILE_POINTS, (i) => ({ height: points[2 * i] ?? 0, block: points[2 * i + 1] ?? 0 }))
      images.set(points, image)
    }
    context.drawImage(image, left, top, right - left, bottom - top)
  }
}

/** Returns a square of land that begins at a block, a pixel for each column; what is not loaded is transparent. */
export function drawLoaded(world: World, x: number, z: number, side: number): HTMLCanvasElement {
  return drawPoints(side, (i) => {
    const bx = x + (i % side)
    const bz = z + Math.floor(i / side)
    const chunk = world.chunk(chunkOf(bx), chunkOf(bz))
    return chunk ? topOf(chunk, within(bx), within(bz)) : null
  })
}

interface Point {
  height: number
  block: number
}

function topOf(chunk: Chunk, x: number, z: number): Point {
  for (let height = chunk.sections.length * SIZE - 1; height >= 0; height--) {
    if (chunk.sections[height >> 5] === AIR) {
      height &= ~31 // nothing but air
      continue
    }
    const block = chunk.get(x, height, z)
    if (block !== AIR) return { height, block }
  }
  return { height: 0, block: AIR }
}

/** Returns a canvas with so many points along a side, a pixel each. */
function drawPoints(side: number, pointAt: (i: number) => Point | null): HTMLCanvasElement {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = side
  const context = context2D(canvas)
  const image = context.createImageData(side, side)
  const points = Array.from({ length: side * side }, (_, i) => pointAt(i))
  for (let z = 0; z < side; z++) {
    for (let x = 0; x < side; x++) {
      const at = z * side + x
      const point = points[at]
      if (!point) continue
      const heightAt = (x: number, z: number) => points[z * side + x]?.height ?? point.height
      // the first row and column have no neighbour here: they are lit like the next ones
      const rise =
        heightAt(Math.max(x, 1), z) -
        heightAt(Math.max(x, 1) - 1, z) +
        heightAt(x, Math.max(z, 1)) -
        heightAt(x, Math.max(z, 1) - 1)
      const light = 1 + SLOPE * Math.max(-STEEPEST, Math.min(STEEPEST, rise)) + (point.height - 32) / 400
      const colour = colourOf(point.block)
      for (const c of [0, 1, 2] as const) image.data[4 * at + c] = colour[c] * light
      image.data[4 * at + 3] = 255
    }
  }
  context.putImageData(image, 0, 0)
  return canvas
}
