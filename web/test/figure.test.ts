import { describe, expect, test } from 'vitest'
import { skinOf } from '../src/hud/skin-dialog'
import { Figure, LEAN, PATTERNS, appearanceOf, setOwnSkin, setSkin, skins } from '../src/render/figure'
import { handOf } from '../src/render/third-person'
import { transform } from '../src/gl/matrix'
import { isSecond } from '../src/render/portrait'

describe('the appearance of a player', () => {
  const ids = Array.from({ length: 400 }, (_, i) => `player ${i}`)

  test('is always the same, and all that can be put on is', () => {
    expect(appearanceOf('ada')).toEqual(appearanceOf('ada'))
    const bits = new Set(ids.map((id) => appearanceOf(id).accent[3]))
    expect([...bits].sort((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, i) => i))
  })

  test('what is put on has another colour than the shirt', () => {
    for (const id of ids) {
      const { shirt, accent } = appearanceOf(id)
      expect(Math.hypot(...shirt.map((value, i) => value - accent[i]!))).toBeGreaterThan(60)
    }
  })
})

describe('a skin', () => {
  test('decides the colours and the pattern, and leaves the face', () => {
    const given = appearanceOf('eve')
    setSkin('eve', skinOf(3, '#ffaa11', '#00ccdd'))
    expect(appearanceOf('eve')).toMatchObject({
      shirt: [255, 170, 17],
      accent: [0, 204, 221, 3 << 4],
      css: 'rgb(255 170 17)',
      skin: given.skin,
      hair: given.hair,
    })
    setSkin('eve', 0)
    expect(appearanceOf('eve')).toEqual(given)
  })

  test('of the player themselves and the latest of others are kept', () => {
    setOwnSkin('me', 1)
    for (let i = 0; i < 5000; i++) setSkin(`other ${i}`, 2)
    expect([skins.get('me'), skins.get('other 4999'), skins.get('other 0')]).toEqual([1, 2, undefined])
    expect(skins.size).toBe(4096)
  })

  test('of a later version is plain', () => {
    setSkin('bob', 0xff123456)
    expect(appearanceOf('bob').accent[3]).toBe(0)
    expect(appearanceOf('bob').shirt).toEqual([17, 34, 51])
  })

  test('has patterns that all differ, and that repeat every 4 pixels upwards', () => {
    const drawn = PATTERNS.slice(1).map((_, i) =>
      Array.from({ length: 96 }, (_, at) => Number(isSecond(i + 1, at % 8, Math.floor(at / 8) - 12))).join(''),
    )
    expect(new Set(drawn).size).toBe(drawn.length)
    expect(drawn[0]).not.toContain('1')
    for (const rows of drawn) expect(rows.slice(0, 32)).toBe(rows.slice(64))
  })
})

test('who sneaks crouches, and looks ahead all the same; the hand is lower', () => {
  const figure = new Figure('ada')
  const hand = () => transform(handOf(figure), 0, 0, 0)
  figure.pose(0, 0, 0, 0.05)
  const [, standing] = hand()
  figure.sneaks = true
  for (let t = 0; t < 1; t += 0.05) figure.pose(0, 0, 0, 0.05)
  expect(figure.state[3]).toBeCloseTo(1, 3)
  expect(figure.limbs[0]).toBeCloseTo(-LEAN, 3)
  expect(hand()[1]).toBeLessThan(standing - 0.15)
  figure.sneaks = false
  for (let t = 0; t < 1; t += 0.05) figure.pose(0, 0, 0, 0.05)
  expect(hand()[1]).toBeCloseTo(standing, 2)
})

test('who waves raises an arm, and lowers it again', () => {
  const figure = new Figure('ada')
  figure.wave()
  let highest = 0
  for (let t = 0; t < 1; t += 0.05) {
    figure.pose(0, 0, 0, 0.05)
    highest = Math.min(highest, figure.limbs[2])
  }
  expect(highest).toBeLessThan(-2.5)
  for (let t = 0; t < 2; t += 0.05) figure.pose(0, 0, 0, 0.05)
  expect(Math.abs(figure.limbs[2])).toBeLessThan(0.1)
})
