import { expect, test } from 'vitest'
import { CHAT, ENOUGH, contrast, fromHSL, readableInChat, type Colour } from '../src/hud/contrast'

const parse = (css: string): Colour =>
  fromHSL(...((css.match(/[\d.]+/g) ?? []).map(Number) as [number, number, number]))

test('contrast as the guidelines define it', () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21)
  expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2)
  expect(contrast([9, 9, 9], [9, 9, 9])).toBe(1)
})

test('hues become colours', () => {
  expect(fromHSL(0, 100, 50)).toEqual([255, 0, 0])
  expect(fromHSL(240, 100, 25)).toEqual([0, 0, 128])
})

test('the name of every player can be read in the chat, and keeps its hue', () => {
  let lightened = 0
  for (let hue = 0; hue < 360; hue++) {
    const css = `hsl(${hue} 62% 58%)`
    const readable = readableInChat(css)
    expect(contrast(parse(readable), CHAT), css).toBeGreaterThanOrEqual(ENOUGH)
    expect(readable.startsWith(`hsl(${hue} 62%`)).toBe(true)
    if (readable !== css) lightened++
  }
  expect(lightened).toBeGreaterThan(0)
  expect(lightened).toBeLessThan(360)
})
