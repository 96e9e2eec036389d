// Mipmaps that keep the look of cut-out textures at a distance. Transparent pixels do not tint their surroundings, and at
// each level the same share of pixels passes the alpha test as at full size (I. Castaño, Computing Alpha Mipmaps, 2010).

import { hash } from '../world/hash'

const ALPHA_TEST = 128 // pixels with at least this alpha are visible

/** Returns the mipmaps of a square RGBA picture, from the picture itself down to one pixel. */
export function mipmapsOf(pixels: Uint8ClampedArray, size: number): Uint8ClampedArray[] {
  let picture = pixels.slice()
  const levels = [picture]
  let visible = 0
  for (let i = 3; i < pixels.length; i += 4) if ((pixels[i] ?? 0) >= ALPHA_TEST) visible++
  const coverage = visible / (size * size)
  // alpha stays unscaled from level to level, so that errors do not add up
  let alphas = Float32Array.from({ length: size * size }, (_, i) => pixels[4 * i + 3] ?? 0)
  for (let edge = size >> 1; edge >= 1; edge >>= 1) {
    const { smaller, means } = halve(picture, alphas, edge)
    alphas = means
    const keep = Math.round(coverage * edge * edge)
    // by descending alpha, ties in random order
    const order = [...means.entries()].sort(([i, a], [j, b]) => b - a || hash(i, edge, 1) - hash(j, edge, 1))
    const [, lowest = ALPHA_TEST] = order[keep - 1] ?? []
    const scale = ALPHA_TEST / lowest
    order.forEach(([i, mean], rank) => {
      const scaled = coverage === 1 ? mean : mean * scale
      smaller[4 * i + 3] = rank < keep ? Math.max(ALPHA_TEST, scaled) : Math.min(ALPHA_TEST - 1, scaled)
    })
    levels.push(smaller)
    picture = smaller
  }
  for (const level of levels) tintHoles(level)
  return levels
}

/** Halves a picture; colours are weighted by alpha. */
function halve(larger: Uint8ClampedArray, alphas: Float32Array, edge: number) {
  const smaller = new Uint8ClampedArray(4 * edge * edge)
  const means = new Float32Array(edge * edge)
  for (let y = 0; y < edge; y++) {
    for (let x = 0; x < edge; x++) {
      const to = y * edge + x
      const four = [0, 1, 2 * edge, 2 * edge + 1].map((step) => 4 * y * edge + 2 * x + step)
      const sum = four.reduce((all, from) => all + (alphas[from] ?? 0), 0)
      means[to] = sum / 4
      for (let c = 0; c < 3 && sum > 0; c++) {
        smaller[4 * to + c] =
          four.reduce((all, from) => all + (larger[4 * from + c] ?? 0) * (alphas[from] ?? 0), 0) / sum
      }
    }
  }
  return { smaller, means }
}

/** Sets fully transparent pixels to the mean colour of the others, because texture filtering mixes them in. */
function tintHoles(pixels: Uint8ClampedArray): void {
  for (let c = 0; c < 3; c++) {
    let sum = 0
    let weight = 0
    for (let i = 0; i < pixels.length; i += 4) {
      const alpha = pixels[i + 3] ?? 0
      sum += (pixels[i + c] ?? 0) * alpha
      weight += alpha
    }
    if (weight === 0) return
    for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] === 0) pixels[i + c] = sum / weight
  }
}
