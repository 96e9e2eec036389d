// Smaller and smaller copies of a tile, made so that cut-out pictures neither thin out nor sparkle from afar: holes do
// not tint what is around them, and at each size as large a part passes the alpha test as at full size (I. Castaño,
// Computing Alpha Mipmaps, 2010).

import { hash } from './pixels'

const TEST = 128 // alpha from which a pixel shows

/** The copies of a square RGBA picture, from the picture itself down to one pixel. */
export function mipmapsOf(pixels: Uint8ClampedArray, size: number): Uint8ClampedArray[] {
  const levels = [pixels.slice()]
  let shows = 0
  for (let i = 3; i < pixels.length; i += 4) if (pixels[i] >= TEST) shows++
  const coverage = shows / (size * size)
  // alpha stays unscaled from level to level, so that errors do not add up
  let alphas = Float32Array.from({ length: size * size }, (_, i) => pixels[4 * i + 3])
  for (let edge = size >> 1; edge >= 1; edge >>= 1) {
    const { smaller, means } = halve(levels[levels.length - 1], alphas, edge)
    alphas = means
    const keep = Math.round(coverage * edge * edge)
    // the densest first, equal ones in no order
    const order = [...means.keys()].sort((a, b) => means[b] - means[a] || hash(a, edge, 1) - hash(b, edge, 1))
    const scale = keep > 0 ? TEST / means[order[keep - 1]] : 1
    order.forEach((i, rank) => {
      const scaled = coverage === 1 ? 255 : means[i] * scale
      smaller[4 * i + 3] = rank < keep ? Math.max(TEST, scaled) : Math.min(TEST - 1, scaled)
    })
    levels.push(smaller)
  }
  for (const level of levels) tintHoles(level)
  return levels
}

/** Halves a picture; colours count by the alpha of their pixels. */
function halve(larger: Uint8ClampedArray, alphas: Float32Array, edge: number) {
  const smaller = new Uint8ClampedArray(4 * edge * edge)
  const means = new Float32Array(edge * edge)
  for (let y = 0; y < edge; y++) {
    for (let x = 0; x < edge; x++) {
      const to = y * edge + x
      const four = [0, 1, 2 * edge, 2 * edge + 1].map((step) => 4 * y * edge + 2 * x + step)
      const sum = four.reduce((all, from) => all + alphas[from], 0)
      means[to] = sum / 4
      for (let c = 0; c < 3 && sum > 0; c++) {
        smaller[4 * to + c] = four.reduce((all, from) => all + larger[4 * from + c] * alphas[from], 0) / sum
      }
    }
  }
  return { smaller, means }
}

/** Gives pixels that do not show at all the mean colour of those that do, which is what filtering mixes in. */
function tintHoles(pixels: Uint8ClampedArray): void {
  const mean = [0, 0, 0]
  let weight = 0
  for (let i = 0; i < pixels.length; i += 4) {
    for (let c = 0; c < 3; c++) mean[c] += pixels[i + c] * pixels[i + 3]
    weight += pixels[i + 3]
  }
  if (weight === 0) return
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] === 0) for (let c = 0; c < 3; c++) pixels[i + c] = mean[c] / weight
  }
}
