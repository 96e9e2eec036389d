import { expect, test } from 'vitest'
import { Lamps } from '../src/world/lamps'
import { worldOf } from './columns'

const LAMP = 20

test('the nearest lamp shines on a place, over the borders of chunks and sections, until it is broken', () => {
  const world = worldOf(2, (_x, y) => (y < 4 ? 1 : 0))
  const lamps = new Lamps(world)
  expect(lamps.glowAt(0, 32, 0, 15)).toBe(0)
  world.set(-3, 31, 2, LAMP)
  expect(lamps.glowAt(0, 32, 0, 15)).toBe(15 - 6)
  world.set(1, 32, 0, LAMP)
  expect(lamps.glowAt(0, 32, 0, 15)).toBe(14)
  world.set(1, 32, 0, 0)
  world.set(-3, 31, 2, 0)
  expect(lamps.glowAt(0, 32, 0, 15)).toBe(0)
})

test('chunks that are replaced or removed bring or take their lamps', () => {
  const world = worldOf(1, (x, y, z) => (x === 5 && y === 5 && z === 5 ? LAMP : 0))
  const lamps = new Lamps(world)
  expect(lamps.glowAt(5, 6, 5, 15)).toBe(14)
  world.remove(0, 0)
  expect(lamps.glowAt(5, 6, 5, 15)).toBe(0)
})
