import { expect, test } from 'vitest'
import { CHAT, ENOUGH, contrast, readableInChat, type Colour } from '../src/hud/contrast'

const parse = (css: string) => (css.match(/\d+/g) ?? []).map(Number) as unknown as Colour

test('contrast as the guidelines define it', () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21)
  expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2)
  expect(contrast([9, 9, 9], [9, 9, 9])).toBe(1)
})

test('the name of every player can be read in the chat, and keeps its hue', () => {
  let lightened = 0
  const steps = [0, 51, 119, 187, 255]
  for (const red of steps)
    for (const green of steps)
      for (const blue of steps) {
        const css = `rgb(${red} ${green} ${blue})`
        const readable = parse(readableInChat(css))
        expect(contrast(readable, CHAT), css).toBeGreaterThanOrEqual(ENOUGH)
        const [r, g, b] = readable
        if (red > green) expect(r, css).toBeGreaterThan(g)
        if (green > blue) expect(g, css).toBeGreaterThan(b)
        if (readable.join() !== [red, green, blue].join()) lightened++
      }
  expect(lightened).toBeGreaterThan(0)
  expect(lightened).toBeLessThan(steps.length ** 3)
})
