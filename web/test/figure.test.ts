import { describe, expect, test } from 'vitest'
import { Figure, appearanceOf } from '../src/render/figure'

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
