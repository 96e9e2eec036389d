// Another player over a link with 200 ms of delay there and back, which loses 2 % of its packets. TCP sends these again, and what was sent after them
// waits: frames come late, and then several at once.

import { describe, expect, test } from 'vitest'
import { InterpolationBuffer } from '../src/motion/interpolation-buffer'
import { AvatarDecoder } from '../src/net/tick'

const TICK = 50
const DELAY = 100
const STEP = 28 / 128 // of a walker, in blocks per tick
const SPEED = (STEP * 1000) / TICK
const FRAME = 1000 / 60

/** Returns when frames arrive that are sent once a tick. */
function arrivals(count: number, loss: number): number[] {
  let random = 1
  const next = () => (random = (random * 16807) % 2147483647) / 2147483647
  let last = 0
  return Array.from({ length: count }, (_, i) => {
    const again = next() < loss ? 200 + 200 * next() : 0
    return (last = Math.max(last, i * TICK + DELAY + again))
  })
}

type Units = [x: number, z: number]

const chunkOf = (at: Units) => at.map((v) => 2 * Math.floor(v / 1024)) as Units // as zigzags

/** Returns the frame of a tick in which bob enters a chunk or not, and has motion or not; at and way are in 1/32 and 1/128 blocks. */
function encode(tick: number, at: Units, enters: boolean, moves: boolean, way: Units): Uint8Array {
  const head = [0x01, tick & 0xff, tick >> 8]
  if (enters) {
    const [x, z] = at.map((v) => [v & 0xff, (v >> 8) & 3]) as [number[], number[]] // from the chunk's corner
    head.push(0x01, ...chunkOf(at), 1, 0, ...new Array<number>(16).fill(7), 3, 98, 111, 98, ...x, 0, 16, ...z, 0, 0)
  }
  if (moves) {
    const cell = (Math.floor(at[0] / 256) % 4) + 4 * (Math.floor(at[1] / 256) % 4)
    head.push(0x20, ...chunkOf(at), 0x80 | cell, 1, 0, 0x48, at[0] % 256, at[1] % 256, way[0] & 0xff, way[1] & 0xff)
  }
  return Uint8Array.from(head)
}

/** Shows a walker who turns as often as given, in ticks; returns how the figure moves from frame to frame. */
function watch(loss: number, turnEvery: number) {
  const decoder = new AvatarDecoder(TICK)
  let buffer: InterpolationBuffer | null = null
  const ways: Units[] = [
    [28, 0],
    [0, 28],
    [-28, 0],
    [0, -28],
  ]
  const place: Units = [256, 256]
  let chunk = ''
  const frames = arrivals(1200, loss).map((at, tick) => {
    const way = ways[Math.floor(tick / turnEvery) % 4]!
    const enters = chunkOf(place).join() !== chunk
    chunk = chunkOf(place).join()
    const moves = enters || tick % 20 === 0 || tick % turnEvery === 0
    const bytes = encode(tick, place, enters, moves, way)
    place[0] += way[0] / 4
    place[1] += way[1] / 4
    return { at, bytes }
  })
  const add = (deltas: ReturnType<AvatarDecoder['extrapolate']>, now: number) => {
    for (const { enter = [], moves = [] } of deltas) {
      for (const pose of [...enter, ...moves]) {
        if (buffer) buffer.add(pose, now)
        else buffer = new InterpolationBuffer(pose, now)
      }
    }
  }
  let before: { x: number; z: number } | null = null
  const seen = { fastest: 0, backwards: 0, still: 0, longestStill: 0 }
  let heading: [number, number] = [0, 0]
  for (let now = 0; now < 1200 * TICK; now += FRAME) {
    while (frames[0] && frames[0].at <= now) add(decoder.decode(frames.shift()!.bytes, now).chunks, now)
    add(decoder.extrapolate(now), now)
    const shown = (buffer as InterpolationBuffer | null)?.at(now)
    if (!shown) continue
    if (before && now > 3000) {
      const [dx, dz] = [shown.x - before.x, shown.z - before.z]
      const speed = (Math.hypot(dx, dz) * 1000) / FRAME / SPEED
      seen.fastest = Math.max(seen.fastest, speed)
      if (dx * heading[0] + dz * heading[1] < -1e-6) seen.backwards++
      if (speed > 0.05) heading = [dx, dz]
      seen.still = speed < 0.25 ? seen.still + FRAME : 0
      seen.longestStill = Math.max(seen.longestStill, seen.still)
    }
    before = shown
  }
  return seen
}

describe('another player', () => {
  test('who walks straight on is shown as evenly as they walk', () => {
    const seen = watch(0.02, Infinity)
    expect(seen.fastest).toBeLessThan(2.2) // times as fast as they walk
    expect(seen.backwards).toBe(0)
    expect(seen.longestStill).toBeLessThan(50)
  })

  test('who turns while packets are lost glides to where they are', () => {
    const seen = watch(0.02, 36)
    expect(seen.fastest).toBeLessThan(3)
    expect(seen.longestStill).toBeLessThan(50)
  })

  test('is shown as without this where no packet is lost', () => {
    expect(watch(0, 36).fastest).toBeLessThan(1.5)
  })
})
