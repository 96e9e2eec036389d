import { expect, test } from 'vitest'
import { QualityGovernor, effectiveQuality } from '../src/quality-governor'
import { defaults } from '../src/settings'

/** Draws for so many seconds at a rate; gives the time then. */
function draw(pace: QualityGovernor, from: number, seconds: number, rate: number): number {
  let now = from
  while (now < from + seconds * 1000) pace.frame((now += 1000 / rate))
  return now
}

test('a slow machine is asked for less, down to a bound, even at a frame in two seconds', () => {
  for (const rate of [0.5, 2, 15]) {
    const pace = new QualityGovernor()
    draw(pace, 0, 100, rate)
    expect(pace.step).toBe(4)
  }
})

test('at 30 and at 60 frames a second all stays as the player wants it', () => {
  for (const rate of [30, 60]) {
    const pace = new QualityGovernor()
    draw(pace, 0, 100, rate)
    expect(pace.step).toBe(0)
  }
})

test('after a hard time everything comes back', () => {
  const pace = new QualityGovernor()
  const now = draw(pace, 0, 10, 10)
  expect(pace.step).toBe(3)
  draw(pace, now, 60, 60)
  expect(pace.step).toBe(0)
})

test('a machine that is fast at a step and slow above it is tried more and more rarely', () => {
  const pace = new QualityGovernor()
  let changes = 0
  let now = 0
  for (const halfHour of [1, 2]) {
    changes = 0
    while (now < halfHour * 1_800_000) changes += Number(pace.frame((now += 1000 / (pace.step === 0 ? 12 : 60))))
  }
  expect(changes).toBeLessThan(10)
})

test('a page that was hidden is not slow', () => {
  const pace = new QualityGovernor()
  let now = draw(pace, 0, 2.9, 60)
  for (let i = 0; i < 20; i++) now = draw(pace, now + 3_600_000, 2.9, 60)
  expect(pace.step).toBe(0)
})

test('told that a page was hidden, it counts nothing of that', () => {
  const pace = new QualityGovernor()
  let now = 0
  for (let i = 0; i < 20; i++) {
    now = draw(pace, now, 2, 60) + 6000
    pace.restart(now)
  }
  expect(pace.step).toBe(0)
})

test('on a screen of 30 frames a second everything comes back, too', () => {
  const pace = new QualityGovernor()
  let now = draw(pace, 0, 10, 30)
  now = draw(pace, now, 10, 10)
  expect(pace.step).toBe(3)
  draw(pace, now, 120, 30)
  expect(pace.step).toBe(0)
})

test('what is drawn never exceeds the settings, nor falls below what the sliders can give', () => {
  const settings = { ...defaults(false), view: 6, renderScale: 0.5 }
  expect(effectiveQuality(settings, 0)).toEqual({ view: 6, renderScale: 0.5 })
  expect(effectiveQuality(settings, 2)).toEqual({ view: 4, renderScale: 0.325 })
  expect(effectiveQuality({ ...settings, view: 3 }, 4)).toEqual({ view: 2, renderScale: 0.25 })
  expect(effectiveQuality({ ...settings, adaptive: false }, 4)).toEqual({ view: 6, renderScale: 0.5 })
})
