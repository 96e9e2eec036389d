import { beforeEach, describe, expect, test } from 'vitest'
import { Gestures } from '../src/input/gestures'
import { withDeadZone } from '../src/input/stick'
import { anglesOf, directionThrough } from '../src/player/ray'

describe('gestures', () => {
  let seen: string[]
  let gestures: Gestures

  beforeEach(() => {
    seen = []
    gestures = new Gestures({
      turned: (x, y) => seen.push(`turn ${x},${y}`),
      pointed: (at) => seen.push(at ? `point ${at.x},${at.y}` : 'point nowhere'),
      tapped: () => seen.push('tap'),
      holdBegan: () => seen.push('hold'),
      holdEnded: () => seen.push('end'),
    })
  })

  test('a short touch is a tap where the finger is, even if it trembles', () => {
    gestures.down(1, 50, 60, 0)
    gestures.move(1, 54, 57)
    gestures.update(100)
    gestures.up(1, 200)
    expect(seen).toEqual(['point 50,60', 'tap', 'point nowhere'])
  })

  test('a finger that moves turns the camera, by all of its way, and taps nothing', () => {
    gestures.down(1, 50, 60, 0)
    gestures.move(1, 58, 60)
    gestures.move(1, 70, 64)
    gestures.update(1000)
    gestures.move(1, 71, 60)
    gestures.up(1, 1200)
    expect(seen).toEqual(['point 50,60', 'point nowhere', 'turn 20,4', 'turn 1,-4'])
  })

  test('a finger that rests holds, and then points where it moves', () => {
    gestures.down(1, 50, 60, 0)
    gestures.update(349)
    expect(seen).toEqual(['point 50,60'])
    gestures.update(350)
    gestures.update(800)
    gestures.move(1, 90, 60)
    gestures.up(1, 900)
    expect(seen).toEqual(['point 50,60', 'hold', 'point 90,60', 'end', 'point nowhere'])
  })

  test('a long touch is no tap if no frame came in between', () => {
    gestures.down(1, 50, 60, 0)
    gestures.up(1, 500)
    expect(seen).toEqual(['point 50,60', 'hold', 'end', 'point nowhere'])
  })

  test('a second finger turns the camera while the first one holds', () => {
    gestures.down(1, 50, 60, 0)
    gestures.update(400)
    gestures.down(2, 200, 60, 400)
    gestures.move(2, 205, 60)
    gestures.up(2, 450)
    gestures.up(1, 500)
    expect(seen).toEqual(['point 50,60', 'hold', 'turn 5,0', 'end', 'point nowhere'])
  })

  test('a finger that the browser takes away does nothing more', () => {
    gestures.down(1, 50, 60, 0)
    gestures.cancel(1)
    gestures.move(1, 90, 60)
    gestures.up(1, 100)
    gestures.down(2, 50, 60, 100)
    gestures.update(500)
    gestures.cancel(2)
    expect(seen).toEqual(['point 50,60', 'point nowhere', 'point 50,60', 'hold', 'end', 'point nowhere'])
  })
})

test('a stick is still in its dead zone, and moves at full speed at its rim and beyond', () => {
  expect(withDeadZone(0.1, -0.1, 0.15)).toEqual([0, 0])
  expect(withDeadZone(0, 1, 0.15)).toEqual([0, 1])
  expect(withDeadZone(-3, 0, 0.15)[0]).toBe(-1)
  const [x, y] = withDeadZone(0.2, 0.2, 0.15)
  expect(Math.hypot(x, y)).toBeCloseTo((Math.hypot(0.2, 0.2) - 0.15) / 0.85)
})

test('the direction through a point of the screen', () => {
  const at = (right: number, up: number, pitch = 0.4) => {
    const { yaw, pitch: above } = anglesOf(...directionThrough(1, pitch, right, up))
    return [yaw, above]
  }
  expect(at(0, 0)[0]).toBeCloseTo(1)
  expect(at(0, 0)[1]).toBeCloseTo(0.4)
  expect(at(0, Math.tan(0.3))[1]).toBeCloseTo(0.7)
  expect(at(Math.tan(0.3), 0, 0)[0]).toBeCloseTo(1.3) // yaw grows to the right
})
