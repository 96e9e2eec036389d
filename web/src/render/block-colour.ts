// The colours of blocks from above.

import { kindOf } from '../world/blocks'
import type { Colour } from './pixels'
import { drawTile } from './tiles'

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
