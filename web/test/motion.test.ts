import { describe, expect, test } from 'vitest'
import { InterpolationBuffer, angleDelta } from '../src/motion/interpolation-buffer'
import { Predictor } from '../src/motion/predictor'

describe('interpolation buffer', () => {
  const pose = (x: number, yaw = 0) => ({ x, y: 64, z: 0, yaw, pitch: 0 })

  test('moves evenly between poses that come every tick', () => {
    const buffer = new InterpolationBuffer(pose(0), 0)
    for (let i = 1; i <= 20; i++) buffer.add(pose(i * 0.2), i * 50)
    const shown = [0, 10, 20, 30, 40, 50].map((ms) => buffer.at(950 + ms).x)
    for (let i = 1; i < shown.length; i++) expect(shown[i]! - shown[i - 1]!).toBeCloseTo(0.04, 5)
  })

  test('shows the past by about two ticks, and comes to rest at the newest pose', () => {
    const buffer = new InterpolationBuffer(pose(0), 0)
    for (let i = 1; i <= 20; i++) buffer.add(pose(i), i * 50)
    expect(buffer.delay).toBeGreaterThanOrEqual(100)
    expect(buffer.delay).toBeLessThanOrEqual(150)
    expect(buffer.at(1000).x).toBeCloseTo(20 - buffer.delay / 50, 5)
    expect(buffer.at(3000).x).toBe(20)
  })

  test('turns the short way round', () => {
    const buffer = new InterpolationBuffer(pose(0, 3), 0)
    buffer.add(pose(0, -3), 50)
    const { yaw } = buffer.at(25 + buffer.delay)
    expect(Math.abs(angleDelta(yaw, Math.PI))).toBeLessThan(0.01)
    expect(angleDelta(0.1, 2 * Math.PI - 0.1)).toBeCloseTo(-0.2)
  })

  test('starts at once after a long rest, and leaps over a teleport', () => {
    const buffer = new InterpolationBuffer(pose(0), 0)
    buffer.add(pose(0.2), 60_000)
    expect(buffer.at(60_000).x).toBe(0)
    expect(buffer.at(60_000 + buffer.delay).x).toBeCloseTo(0.2)
    buffer.add(pose(500), 60_050)
    expect(buffer.at(60_050).x).toBe(500)
  })

  test('is never ahead of the newest pose, whatever the arrival times', () => {
    const buffer = new InterpolationBuffer(pose(0), 0)
    const arrivals = [50, 51, 52, 300, 300, 310, 640, 660, 900]
    arrivals.forEach((now, i) => {
      buffer.add(pose(i + 1), now)
      const { x } = buffer.at(now)
      expect(x).toBeGreaterThanOrEqual(0)
      expect(x).toBeLessThanOrEqual(i + 1)
    })
    let before = buffer.at(900).x
    for (let now = 900; now < 2000; now += 10) {
      const { x } = buffer.at(now)
      expect(x).toBeGreaterThanOrEqual(before)
      before = x
    }
    expect(before).toBe(arrivals.length)
  })

  test('is shown where it was when a dozen poses come at once', () => {
    const buffer = new InterpolationBuffer(pose(0), 0)
    for (let i = 1; i <= 20; i++) buffer.add(pose(i), i * 50)
    const { x } = buffer.at(1050)
    for (let i = 0; i < 20; i++) buffer.add(pose(30), 1050 + i / 10)
    expect(buffer.at(1052).x).toBeCloseTo(x, 0)
  })

  test('a pose that arrives out of order in time does not turn the clock back', () => {
    const buffer = new InterpolationBuffer(pose(0), 100)
    buffer.add(pose(1), 150)
    buffer.add(pose(2), 140)
    buffer.add(pose(3), 160)
    expect(buffer.at(155 + buffer.delay).x).toBeCloseTo(2.5)
  })

  test('the delay follows the rate of updates, up to its limit', () => {
    const every = (interval: number) => {
      const buffer = new InterpolationBuffer(pose(0), 0)
      for (let i = 1; i <= 100; i++) buffer.add(pose(0.1 * i), i * interval)
      return buffer.delay
    }
    expect(every(50)).toBe(110)
    expect(every(200)).toBeCloseTo(320, 0)
    expect(every(550)).toBe(600)
  })
})

describe('predictor', () => {
  test('moves on at its velocity, and climbs on its own', () => {
    const predictor = new Predictor(10, 64, 20, 100)
    expect(predictor.at(130)).toEqual({ x: 10, y: 64, z: 20 })
    predictor.setVelocity(0.25, -0.5)
    predictor.setHeight(70, 2, 104)
    expect(predictor.at(108)).toEqual({ x: 12, y: 78, z: 16 })
    predictor.setPlace(0, 0, 108)
    expect(predictor.at(109)).toEqual({ x: 0.25, y: 80, z: -0.5 })
  })

  test('stops 40 ticks after the last update', () => {
    const predictor = new Predictor(0, 64, 0, 0)
    predictor.setVelocity(1, 0)
    expect(predictor.at(41)).toEqual(predictor.at(40))
    expect([predictor.isMoving(39.9), predictor.isMoving(40)]).toEqual([true, false])
    predictor.setHeight(64, 1, 30)
    expect([predictor.isMoving(69.9), predictor.isMoving(70)]).toEqual([true, false])
    expect(predictor.at(80)).toEqual({ x: 40, y: 104, z: 0 })
  })

  test('stands still without a velocity', () => {
    expect(new Predictor(1, 2, 3, 0).isMoving(1)).toBe(false)
  })

  test('glides to where a late update says that it is, and leaps if that is far', () => {
    const any = { least: 0, most: 12 }
    const predictor = new Predictor(0, 64, 0, 0)
    predictor.setVelocity(0.2, 0)
    const shown = predictor.at(5)
    predictor.setPlace(0.4, 0.6, 5)
    predictor.setVelocity(0, 0)
    predictor.glideFrom(shown, 5, any)
    expect(predictor.at(5).x).toBeCloseTo(shown.x)
    expect(predictor.at(5).z).toBeCloseTo(shown.z)
    const { x, z } = predictor.at(6)
    expect(Math.hypot(x - shown.x, z - shown.z)).toBeCloseTo(0.2) // blocks in a tick
    expect(predictor.isMoving(8)).toBe(true)
    expect(predictor.at(10).x).toBeCloseTo(0.4)
    expect(predictor.isMoving(11)).toBe(false)
    predictor.setPlace(10, 0.6, 10)
    predictor.glideFrom({ x: 0, y: 64, z: 0.6 }, 10, any)
    expect(predictor.at(20).x).toBeCloseTo(5) // 10 blocks take a second
    expect(predictor.at(30).x).toBeCloseTo(10)
    predictor.setPlace(100, 0, 20)
    predictor.glideFrom(shown, 20, any)
    expect(predictor.at(20).x).toBe(100)
    predictor.setPlace(100.4, 0, 21)
    predictor.glideFrom({ x: 100, y: 64, z: 0 }, 21, { least: 0.5, most: 12 })
    expect(predictor.at(21).x).toBe(100.4)
  })
})
