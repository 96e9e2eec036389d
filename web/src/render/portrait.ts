// A picture of a figure from the front, for the dialog in which players choose their skin.

import { PATTERNS, type Appearance } from './figure'
import { PAINTS, PARTS, type Paint } from './figure-parts'
import type { Colour } from './pixels'

const SCALE = 8 // canvas pixels for a pixel of the figure
const WIDTH = 18
const HEIGHT = 33
const WHITE: Colour = [245, 245, 245]
const EYE: Colour = [48, 60, 98]

/** Reports whether the pattern has the second colour at a pixel of the cloth, as the shader of figures does. */
export function isSecond(pattern: number, x: number, y: number): boolean {
  return (((PATTERNS[pattern] ?? 0) >>> ((y & 3) * 8 + x)) & 1) === 1
}

/** Returns the colour of a paint, and whether the pattern of the shirt is on it. */
function colourOf(paint: Paint, { shirt, trousers, skin, hair, accent }: Appearance): { base: Colour; cloth: boolean } {
  const [red, green, blue, bits] = accent
  if (paint === 'white') return { base: WHITE, cloth: false }
  if (paint === 'eye') return { base: EYE, cloth: false }
  if (paint === 'trousers' || paint === 'skin' || paint === 'hair')
    return { base: { trousers, skin, hair }[paint], cloth: false }
  const worn = paint !== 'shirt' && ((bits >> (PAINTS.indexOf(paint) - 6)) & 1) === 1
  if (paint === 'cap') return { base: worn ? [red, green, blue] : hair, cloth: false }
  return { base: worn ? [red, green, blue] : shirt, cloth: true }
}

export function drawPortrait(canvas: HTMLCanvasElement, appearance: Appearance): void {
  canvas.width = WIDTH * SCALE
  canvas.height = HEIGHT * SCALE
  const context = canvas.getContext('2d')
  if (!context) return
  const [red, green, blue, bits] = appearance.accent
  const boxes = PARTS.flatMap(({ joint, boxes }) => boxes.map((box) => ({ joint, ...box })))
  boxes.sort((a, b) => a.at[2] + a.size[2] / 2 - (b.at[2] + b.size[2] / 2))
  const fill = (x: number, y: number, width: number, height: number, colour: Colour, brightness: number) => {
    context.fillStyle = `rgb(${colour.map((value) => Math.round(value * brightness)).join(' ')})`
    const [left, right] = [x, x + width].map((at) => Math.round((WIDTH / 2 + at) * SCALE)) as [number, number]
    const [top, bottom] = [y + height, y].map((at) => Math.round((HEIGHT - at) * SCALE)) as [number, number]
    context.fillRect(left, top, right - left, bottom - top)
  }
  for (const { joint, at, size, paint, brightness = 1 } of boxes) {
    const { base, cloth } = colourOf(paint, appearance)
    const [left, bottom] = [at[0] - size[0] / 2, at[1] - size[1] / 2]
    fill(joint[0] + left, joint[1] + bottom, size[0], size[1], base, brightness)
    if (!cloth) continue
    for (let x = Math.floor(left); x < left + size[0]; x++) {
      const column = Math.min(Math.max(x + 4 + 2 * Math.sign(joint[0]), 0), 7)
      for (let y = Math.floor(bottom); y < bottom + size[1]; y++) {
        if (!isSecond(bits >> 4, column, y)) continue
        const [x0, y0] = [Math.max(x, left), Math.max(y, bottom)]
        const [x1, y1] = [Math.min(x + 1, left + size[0]), Math.min(y + 1, bottom + size[1])]
        fill(joint[0] + x0, joint[1] + y0, x1 - x0, y1 - y0, [red, green, blue], brightness)
      }
    }
  }
}
