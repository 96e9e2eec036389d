import { describe, expect, test } from 'vitest'
import { columnAt } from '../src/render/rain'
import { AIR, WATER, kindOf } from '../src/world/blocks'
import { Chunk, World } from '../src/world/world'
import { Clock } from '../src/world/clock'
import { rainAt } from '../src/world/weather'

const WORLD = '4be1c0ffee'.padEnd(64, '0')

describe('the weather', () => {
  const days = Array.from({ length: 40_000 }, (_, i) => 29_000 + i / 100)

  test('is the same for all, and another one in another world', () => {
    const of = (world: string) => days.map((day) => rainAt(world, day)).join()
    expect(of(WORLD)).toBe(of(WORLD))
    expect(of(WORLD)).not.toBe(of(WORLD.replace('4', '5')))
  })

  test('is dry most of the time, and changes slowly', () => {
    const rain = days.map((day) => rainAt(WORLD, day))
    const wet = rain.filter((strength) => strength > 0).length / rain.length
    expect(wet).toBeGreaterThan(0.2)
    expect(wet).toBeLessThan(0.5)
    expect(Math.max(...rain)).toBe(1)
    for (const [i, strength] of rain.entries()) {
      expect(strength).toBeGreaterThanOrEqual(0)
      if (i > 0) expect(Math.abs(strength - rain[i - 1]!)).toBeLessThan(0.6) // within a hundredth of a day
    }
  })

  test('follows the clock of the server', () => {
    const clock = new Clock()
    clock.set(600, 1000, 1_200_000)
    clock.setDate(1_200_000 * 29_000, 1000)
    expect(clock.daysAt(1000)).toBe(29_000)
    clock.set(0, 500_000) // a later answer says the time of day only
    expect(clock.daysAt(601_000)).toBe(29_000.5)
  })
})

test('rain falls down to the highest block that is solid, opaque or water, and snow on snow', () => {
  const [STONE, TALL_GRASS, SNOW, GLASS, SNOWY_GRASS] = ['Stone', 'Tall grass', 'Snow', 'Glass', 'Snowy grass'].map(
    (name) => Array.from({ length: 100 }).findIndex((_, block) => kindOf(block).name === name),
  ) as [number, number, number, number, number]
  const world = new World()
  const over = (...blocks: number[]) => {
    const chunk = new Chunk(0, 0, [AIR, AIR, AIR, AIR])
    for (const [i, block] of blocks.entries()) chunk.set(3, 10 + i, 4, block)
    world.put(chunk)
    return columnAt(world, 3, 4, 5)
  }
  expect(over(STONE)).toEqual({ height: 11, snow: false })
  expect(over(STONE, TALL_GRASS)).toEqual({ height: 11, snow: false })
  expect(over(STONE, AIR, AIR, GLASS)).toEqual({ height: 14, snow: false })
  expect(over(STONE, ...Array.from({ length: 90 }, () => AIR), GLASS)).toEqual({ height: 102, snow: false })
  expect(over(STONE, WATER)).toEqual({ height: 12, snow: false })
  expect(over(STONE, SNOW)).toEqual({ height: 12, snow: true })
  expect(over(SNOWY_GRASS)).toEqual({ height: 11, snow: true })
  expect(over()).toEqual({ height: 5, snow: false })
  expect(columnAt(world, 300, 4, 5).height).toBe(world.height) // not loaded
})
