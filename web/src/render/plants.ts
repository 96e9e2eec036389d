// Textures of bark and leaves, and of plants that are drawn as two crossed quads.

import { TILE, bright, cobbles, grain, mix, type Colour, type Pixels } from './pixels'

const STEM: Colour = [86, 136, 56]

/** Draws leaves in small clusters, lit from above, with gaps between them. */
export function foliage(p: Pixels, colour: Colour, gaps: number): Pixels {
  p.each((x, y) => {
    const { gap, which, near } = cobbles(x, y, 5, p.seed)
    const cluster = 0.88 + 0.2 * p.noise(which, 1)
    const edge = gap < 0.8 ? 0.84 : 1
    const lit = 1.06 - 0.035 * near + 0.05 * (p.noise(x, y) - 0.5)
    return bright(colour, cluster * edge * lit)
  })
  return pierce(p, gaps, (x, y) => grain(x, y, 4, p.seed + 5) + 0.2 * Math.min(2, cobbles(x, y, 5, p.seed).gap))
}

/** Makes the pixels with the lowest height transparent; gaps is their share of the picture. */
function pierce(p: Pixels, gaps: number, height: (x: number, y: number) => number): Pixels {
  const heights = Array.from({ length: TILE * TILE }, (_, i) => height(i % TILE, Math.floor(i / TILE)))
  const level = [...heights].sort((a, b) => a - b)[Math.floor(gaps * heights.length)] ?? 0
  heights.forEach((h, i) => {
    if (h < level) p.set(i % TILE, Math.floor(i / TILE), [0, 0, 0], 0)
  })
  return p
}

/** Draws needles: short strokes that hang from twigs. */
export function needles(p: Pixels, colour: Colour): Pixels {
  p.each((x, y) => {
    const stroke = grain(x, Math.floor(y / 3), 2, p.seed)
    const tip = (y + Math.floor(4 * p.noise(x, 3))) % 4
    return bright(colour, 0.82 + 0.26 * stroke + (tip === 0 ? 0.13 : tip === 3 ? -0.1 : 0) + 0.05 * p.noise(x, y))
  })
  return pierce(p, 0.12, (x, y) => grain(x, y >> 1, 4, p.seed + 5) + 0.3 * p.noise(x, y, 3))
}

export function birchBark(p: Pixels): Pixels {
  p.each((x, y) => bright([226, 224, 214], 0.92 + 0.08 * grain(x, y, 4, p.seed) + 0.05 * p.noise(x, y)))
  for (let i = 0; i < 9; i++) {
    const x0 = Math.floor(p.noise(i, 1) * TILE)
    const y = Math.floor((i * TILE) / 9 + p.noise(i, 2))
    const length = 2 + Math.floor(p.noise(i, 3) * 4)
    for (let k = 0; k < length; k++) p.set(x0 + k, y, bright([62, 58, 54], 1 + 0.5 * p.noise(i, k + 4)))
    p.shade(x0 + 1, y + 1, 0.84)
  }
  return p
}

/** Draws reddish plates with dark cracks between them. */
export function pineBark(p: Pixels): Pixels {
  return p.each((x, y) => {
    const { gap, which } = cobbles(x, y >> 1, 4, p.seed)
    if (gap < 0.7) return bright([70, 46, 34], 0.9 + 0.2 * p.noise(x, y))
    return bright([124, 84, 58], 0.84 + 0.26 * p.noise(which, 1) + 0.1 * p.noise(x, y))
  })
}

/** Makes all pixels transparent. */
function clear(p: Pixels, colour: Colour): Pixels {
  for (let y = 0; y < TILE; y++) for (let x = 0; x < TILE; x++) p.set(x, y, colour, 0)
  return p
}

function dot(p: Pixels, x: number, y: number, colour: Colour): void {
  const [px, py] = [Math.round(x), Math.round(y)]
  if (px >= 0 && px < TILE && py >= 0 && py < TILE) p.set(px, py, colour)
}

/** Draws a blade from the ground at x0, high pixels tall, that leans sideways and is darker at its base. */
function blade(p: Pixels, x0: number, high: number, lean: number, colour: Colour): void {
  for (let i = 0; i < high; i++) {
    const t = i / Math.max(1, high - 1)
    dot(p, x0 + lean * t * t, TILE - 1 - i, bright(colour, 0.76 + 0.38 * t))
  }
}

/** Draws blades of grass in colours between colour and ripe. */
export function grassBlades(p: Pixels, colour: Colour, ripe: Colour): Pixels {
  clear(p, colour)
  const count = 10
  for (let i = 0; i < count; i++) {
    const x = 0.8 + (i * 13.6) / (count - 1)
    const middle = 1 - Math.abs(x - 7.5) / 12
    const high = 4 + Math.floor((3 + 8 * p.noise(i, 2)) * middle)
    const lean = ((x - 7.5) * 0.22 + (p.noise(i, 3) - 0.5) * 2.4) * (high / 11)
    blade(p, x, high, lean, mix(colour, ripe, p.noise(i, 4)))
  }
  return p
}

export function fern(p: Pixels): Pixels {
  const colour: Colour = [76, 132, 62]
  clear(p, colour)
  const fronds: [out: number, up: number][] = [
    [-6.5, 8],
    [6.5, 8],
    [-4, 12],
    [4.5, 11.5],
    [0.5, 13.5],
  ]
  fronds.forEach(([out, up], i) => {
    const tone = bright(colour, 0.86 + 0.08 * i)
    for (let step = 0; step <= 12; step++) {
      const t = step / 12
      const x = 7.5 + out * t
      const y = TILE - 1 - up * Math.sin(t * 1.75)
      dot(p, x, y, bright(tone, 0.84 + 0.2 * t))
      if (step < 3 || step % 2) continue
      const wide = 1.3 * (1.25 - t)
      for (let k = 1; k <= Math.ceil(wide); k++) {
        const leaflet = bright(tone, 0.96 + 0.16 * t)
        if (Math.abs(out) < 2) {
          dot(p, x - k, y + k - 1, leaflet)
          dot(p, x + k, y + k - 1, leaflet)
        } else {
          dot(p, x, y - k, leaflet)
          dot(p, x, y + k, bright(leaflet, 0.86))
        }
      }
    }
  })
  return p
}

/** The flowers of a tuft: x, and the height of the head above the ground, in pixels. */
const HEADS: [x: number, high: number][] = [
  [4, 8],
  [11, 7],
  [7, 12],
]

/** Draws a few flowers on stems; head draws one head around (x, y). */
function flowers(p: Pixels, head: (x: number, y: number, which: number) => void): Pixels {
  clear(p, STEM)
  HEADS.forEach(([x, high], i) => {
    for (let k = 0; k < high; k++)
      dot(
        p,
        x + (k < high / 2 ? 0.35 * (8 - x) * (1 - (2 * k) / high) : 0),
        TILE - 1 - k,
        bright(STEM, 0.8 + (0.3 * k) / high),
      )
    const leaf = TILE - 2 - Math.floor(high / 3)
    dot(p, x + 1, leaf, bright(STEM, 1.1))
    dot(p, x + 2, leaf - 1, bright(STEM, 1.2))
    if (i === 2) dot(p, x - 1, leaf - 2, bright(STEM, 1.1))
    head(x, TILE - 1 - high, i)
  })
  blade(p, 2, 4, -1.5, STEM)
  blade(p, 9, 5, 1.5, STEM)
  blade(p, 13, 3, 1, STEM)
  return p
}

function stamp(p: Pixels, x0: number, y0: number, rows: string[], colours: Record<string, Colour>): void {
  rows.forEach((row, j) => {
    for (let i = 0; i < row.length; i++) {
      const colour = colours[row.charAt(i)]
      if (colour) dot(p, x0 + i - (row.length >> 1), y0 + j - (rows.length >> 1), colour)
    }
  })
}

export function poppy(p: Pixels): Pixels {
  const colours: Record<string, Colour> = { r: [212, 48, 38], d: [164, 28, 26], o: [236, 84, 58], b: [44, 28, 30] }
  return flowers(p, (x, y) => stamp(p, x, y, [' oo ', 'orrr', 'rbrd', ' dd '], colours))
}

export function dandelion(p: Pixels): Pixels {
  const colours: Record<string, Colour> = { y: [250, 208, 44], l: [255, 232, 110], d: [222, 160, 24] }
  return flowers(p, (x, y) => stamp(p, x, y, [' l ', 'lyy', ' d '], colours))
}

export function cornflower(p: Pixels): Pixels {
  const colours: Record<string, Colour> = { b: [72, 104, 220], l: [120, 150, 246], d: [46, 62, 156] }
  return flowers(p, (x, y) => stamp(p, x, y, ['l b', 'bdl', 'b b'], colours))
}

export function daisy(p: Pixels): Pixels {
  const colours: Record<string, Colour> = { w: [250, 250, 246], g: [216, 218, 222], y: [244, 196, 48] }
  return flowers(p, (x, y) => stamp(p, x, y, [' w ', 'wyw', ' g '], colours))
}

export function deadBush(p: Pixels): Pixels {
  const colour: Colour = [124, 90, 54]
  clear(p, colour)
  const branches: [out: number, up: number][] = [
    [-6, 9],
    [5.5, 10],
    [-2.5, 12.5],
    [2, 8],
    [6.5, 5],
    [-5.5, 4.5],
  ]
  branches.forEach(([out, up], i) => {
    const tone = bright(colour, 0.85 + 0.3 * p.noise(i, 1))
    for (let step = 0; step <= 14; step++) {
      const t = step / 14
      dot(p, 7.5 + out * t ** 1.3, TILE - 1 - up * t, bright(tone, 0.85 + 0.3 * t))
    }
    const fork = Math.sign(out)
    dot(p, 7.5 + out * 0.6 + fork, TILE - 2 - up * 0.8, tone)
    dot(p, 7.5 + out * 0.55 + fork * 2, TILE - 3 - up * 0.8, bright(tone, 1.15))
  })
  return p
}

/** Draws stalks as high as the block, so that they can be stacked, with leaves at their sides. */
export function reeds(p: Pixels): Pixels {
  const colour: Colour = [112, 150, 74]
  clear(p, colour)
  ;[2, 5, 8, 10, 13].forEach((x, i) => {
    const tone = mix(colour, [172, 164, 96], 0.7 * p.noise(i, 1))
    const node = Math.floor(p.noise(i, 2) * 7)
    for (let y = 0; y < TILE; y++) p.set(x, y, bright(tone, (y + node) % 7 === 0 ? 0.74 : 0.92 + 0.14 * p.noise(x, y)))
    const side = i % 2 ? 1 : -1
    for (let k = 1; k <= 4; k++)
      dot(p, x + side * Math.min(2, k * 0.7), node + 7 - k * 1.6, bright(tone, 0.95 + 0.06 * k))
  })
  return p
}
