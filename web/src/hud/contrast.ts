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

/** Returns a colour, lightened until it can be read in the chat. css is rgb(red green blue). */
export function readableInChat(css: string): string {
  const [red = 0, green = 0, blue = 0] = (css.match(/[\d.]+/g) ?? []).map(Number)
  for (let white = 0; ; white += 0.01) {
    const mixed = [red, green, blue].map((value) => Math.round(value + (255 - value) * white)) as [
      number,
      number,
      number,
    ]
    if (white >= 1 || contrast(mixed, CHAT) >= ENOUGH) return `rgb(${mixed.join(' ')})`
  }
}
