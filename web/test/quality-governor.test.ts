import { expect, test } from 'vitest'
import { QualityGovernor, effectiveQuality } from '../src/settings/quality-governor'
import { defaults } from '../src/settings/settings'

/** Draws for some seconds at a rate; returns the time at the end. */
function draw(governor: QualityGovernor, from: number, seconds: number, rate: number): number {
  let now = from
  while (now < from + seconds * 1000) governor.countFrame((now += 1000 / rate))
  return now
}

test('slow frames lower the quality to the minimum, even at one frame in two seconds', () => {
  for (const rate of [0.5, 2, 15]) {
    const governor = new QualityGovernor()
    draw(governor, 0, 100, rate)
    expect(governor.step).toBe(4)
  }
})

test('at 30 and at 60 frames per second the quality stays full', () => {
  for (const rate of [30, 60]) {
    const governor = new QualityGovernor()
    draw(governor, 0, 100, rate)
    expect(governor.step).toBe(0)
  }
})

test('the quality recovers after slow frames', () => {
  const governor = new QualityGovernor()
  const now = draw(governor, 0, 10, 10)
  expect(governor.step).toBe(3)
  draw(governor, now, 60, 60)
  expect(governor.step).toBe(0)
})

test('a machine that is fast at a step and slow above it is raised less and less often', () => {
  const governor = new QualityGovernor()
  let changes = 0
  let now = 0
  for (const halfHour of [1, 2]) {
    changes = 0
    while (now < halfHour * 1_800_000)
      changes += Number(governor.countFrame((now += 1000 / (governor.step === 0 ? 12 : 60))))
  }
  expect(changes).toBeLessThan(10)
})

test('a gap from a hidden page does not count as slow', () => {
  const governor = new QualityGovernor()
  let now = draw(governor, 0, 2.9, 60)
  for (let i = 0; i < 20; i++) now = draw(governor, now + 3_600_000, 2.9, 60)
  expect(governor.step).toBe(0)
})

test('restart discards the time when the page was hidden', () => {
  const governor = new QualityGovernor()
  let now = 0
  for (let i = 0; i < 20; i++) {
    now = draw(governor, now, 2, 60) + 6000
    governor.restart(now)
  }
  expect(governor.step).toBe(0)
})

test('the quality recovers on a screen with 30 frames per second, too', () => {
  const governor = new QualityGovernor()
  let now = draw(governor, 0, 10, 30)
  now = draw(governor, now, 10, 10)
  expect(governor.step).toBe(3)
  draw(governor, now, 120, 30)
  expect(governor.step).toBe(0)
})

test('the effective quality stays within the settings and the ranges of the sliders', () => {
  const settings = { ...defaults(false), view: 6, renderScale: 0.5 }
  expect(effectiveQuality(settings, 0)).toEqual({ view: 6, renderScale: 0.5 })
  expect(effectiveQuality(settings, 2)).toEqual({ view: 4, renderScale: 0.325 })
  expect(effectiveQuality({ ...settings, view: 3 }, 4)).toEqual({ view: 2, renderScale: 0.25 })
  expect(effectiveQuality({ ...settings, adaptive: false }, 4)).toEqual({ view: 6, renderScale: 0.5 })
})
