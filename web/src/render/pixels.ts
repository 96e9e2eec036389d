// A canvas for pixel art: 16×16 RGBA, row 0 on top. Coordinates wrap, and all randomness is a hash of the position.

import { hash } from '../world/hash'

export const TILE = 16

export type Colour = readonly [r: number, g: number, b: number]

/** Returns smooth noise in [0, 1) that repeats every TILE pixels; cell is the grain in pixels and divides TILE. */
export function grain(x: number, y: number, cell: number, seed: number): number {
  const cells = TILE / cell
  const gx = x / cell
  const gy = y / cell
  const x0 = Math.floor(gx)
  const y0 = Math.floor(gy)
  const fx = gx - x0
  const fy = gy - y0
  const at = (i: number, j: number) => hash(((i % cells) + cells) % cells, ((j % cells) + cells) % cells, seed)
  const upper = at(x0, y0) * (1 - fx) + at(x0 + 1, y0) * fx
  const lower = at(x0, y0 + 1) * (1 - fx) + at(x0 + 1, y0 + 1) * fx
  return upper * (1 - fy) + lower * fy
}

/** Returns cellular noise: the nearest scattered point, its distance (near), and the gap to the second nearest. */
export function cobbles(
  x: number,
  y: number,
  cells: number,
  seed: number,
): { gap: number; which: number; near: number } {
  const size = TILE / cells
  let near = 99
  let second = 99
  let which = 0
  const cx = Math.floor(x / size)
  const cy = Math.floor(y / size)
  for (let j = cy - 2; j <= cy + 2; j++) {
    for (let i = cx - 2; i <= cx + 2; i++) {
      const wi = ((i % cells) + cells) % cells
      const wj = ((j % cells) + cells) % cells
      const px = (i + 0.15 + 0.7 * hash(wi, wj, seed)) * size
      const py = (j + 0.15 + 0.7 * hash(wi, wj, seed + 1)) * size
      const distance = Math.hypot(px - x - 0.5, (py - y - 0.5) * 1.15)
      if (distance < near) {
        second = near
        near = distance
        which = wj * cells + wi
      } else if (distance < second) second = distance
    }
  }
  return { gap: second - near, which, near }
}

export class Pixels {
  readonly data = new Uint8ClampedArray(TILE * TILE * 4)

  constructor(readonly seed: number) {}

  set(x: number, y: number, colour: Colour, alpha = 255): void {
    const at = 4 * ((y & 15) * TILE + (x & 15))
    this.data[at] = colour[0]
    this.data[at + 1] = colour[1]
    this.data[at + 2] = colour[2]
    this.data[at + 3] = alpha
  }

  get(x: number, y: number): Colour {
    const at = 4 * ((y & 15) * TILE + (x & 15))
    return [this.data[at] ?? 0, this.data[at + 1] ?? 0, this.data[at + 2] ?? 0]
  }

  /** Multiplies a pixel's colour. */
  shade(x: number, y: number, by: number): void {
    const [r, g, b] = this.get(x, y)
    const at = 4 * ((y & 15) * TILE + (x & 15))
    this.data[at] = r * by
    this.data[at + 1] = g * by
    this.data[at + 2] = b * by
  }

  each(colour: (x: number, y: number) => Colour | null): this {
    for (let y = 0; y < TILE; y++) {
      for (let x = 0; x < TILE; x++) {
        const c = colour(x, y)
        if (c) this.set(x, y, c)
      }
    }
    return this
  }

  /** Fills with a colour; rough adds fine and cloudy adds coarse variation, as fractions of the brightness. */
  fill(colour: Colour, rough: number, cloudy: number): this {
    return this.each((x, y) => {
      const speck = Math.floor(hash(x, y, this.seed) * 5) / 4 - 0.5
      const cloud = grain(x, y, 4, this.seed + 7) - 0.5
      return bright(colour, 1 + rough * speck + cloudy * cloud)
    })
  }

  noise(x: number, y: number, more = 0): number {
    return hash(x, y, this.seed + 31 * (more + 1))
  }
}

export function bright(colour: Colour, by: number): Colour {
  return [colour[0] * by, colour[1] * by, colour[2] * by]
}

export function mix(a: Colour, b: Colour, t: number): Colour {
  return [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t]
}
