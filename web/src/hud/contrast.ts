// Contrast of text by the Web Content Accessibility Guidelines 2.2.

/** Of text to its background, for level AA. */
export const ENOUGH = 4.5
/** The lightest that the background of the chat gets: its colour over a white sky. */
export const CHAT = [47, 50, 54] as const

export type Colour = readonly [red: number, green: number, blue: number] // each 0–255

export function contrast(a: Colour, b: Colour): number {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((value) => {
    const part = value / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** Returns a colour, lightened until it can be read in the chat. css is hsl(hue saturation lightness). */
export function readableInChat(css: string): string {
  const [hue = 0, saturation = 0, lightness = 0] = (css.match(/[\d.]+/g) ?? []).map(Number)
  let light = lightness
  while (light < 100 && contrast(fromHSL(hue, saturation, light), CHAT) < ENOUGH) light++
  return `hsl(${hue} ${saturation}% ${light}%)`
}

export function fromHSL(hue: number, saturation: number, lightness: number): Colour {
  const [s, l] = [saturation / 100, lightness / 100]
  const channel = (n: number) => {
    const k = (n + hue / 30) % 12
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))))
  }
  return [channel(0), channel(8), channel(4)]
}
