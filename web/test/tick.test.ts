// The bytes were written by the Go side (wire/sessionmsg/tick_test.go, TestGoldenTicks).

import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decodeCBOR, encodeCBOR } from '../src/net/cbor'
import { decodeBinary, encodeBinary } from '../src/net/protocol'
import { AvatarDecoder, type TickFrame } from '../src/net/tick'
import { fromBase64 } from '../src/net/bytes'

const golden = JSON.parse(
  readFileSync(new URL('../../wire/sessionmsg/testdata/session.json', import.meta.url), 'utf8'),
) as {
  frames: string[]
  messages: string[]
  json: Record<string, unknown>[]
}

const bytesOf = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))
const TICK = 50

describe('tick frames', () => {
  test('decode to the same deltas as in JSON', () => {
    const decoder = new AvatarDecoder(TICK)
    const times = [0, 50, 250, 300, 350, 400]
    const frames = golden.frames.map((hex, i) => decoder.decode(bytesOf(hex), times[i]!))
    const [first, second, still, last, back, held] = frames as [
      TickFrame,
      TickFrame,
      TickFrame,
      TickFrame,
      TickFrame,
      TickFrame,
    ]

    const delta = first.chunks[0]!
    expect(delta.chunk).toEqual([-1, 2])
    expect(delta.enter!.map(({ name, guest, x, y, z }) => ({ name, guest, x, y, z }))).toEqual([
      { name: 'ann', guest: true, x: -20.5, y: 64, z: 70.25 },
      { name: 'bob', guest: undefined, x: -4, y: 70.5, z: 95.5 },
    ])
    expect(delta.enter![0]!.yaw).toBeCloseTo(Math.PI / 2, 6)
    expect(delta.enter![1]!.pitch).toBeCloseTo(-Math.PI / 2, 6)
    expect(delta.blocks).toEqual([
      { x: -28, y: 63, z: 71, block: 0 },
      { x: -1, y: 127, z: 95, block: 300 },
    ])
    const ann = delta.enter![0]!.player
    const bob = delta.enter![1]!.player
    expect(ann).toMatch(/^[0-9a-f]{32}$/)
    expect(delta.says).toEqual([{ player: ann, name: 'ann', text: 'hello 🌍' }])

    const moved = second.chunks.flatMap((delta) => delta.moves ?? [])
    // the frame has two ticks: in the later one ann has risen by half a block
    expect(moved.find(({ player }) => player === ann)).toMatchObject({ x: -19.75, y: 64.5, z: 70.25 })
    expect(moved.find(({ player }) => player === bob)).toMatchObject({ x: -4, y: 200 - 16 / 64, z: 95.5, yaw: Math.PI })

    // four ticks later, ann is extrapolated by her velocity and climb, and bob keeps falling
    const walked = still.chunks.flatMap((delta) => delta.moves ?? [])
    expect(walked.map(({ player }) => player)).toEqual([ann, bob])
    expect(walked[0]!.x).toBeCloseTo(-19.75 + (4 * 32) / 128, 9)
    expect(walked[0]!.y).toBeCloseTo(64.5 + (4 * 8) / 64, 9)
    expect(walked[0]!.z).toBeCloseTo(70.25 - 4 / 128, 9)
    expect(walked[1]).toMatchObject({ x: -4, y: 200 - (5 * 16) / 64, z: 95.5 })

    // bob entered the next chunk before leaving this one: only ann is gone
    expect(last.tick - first.tick).toBe(7)
    expect(last.chunks[0]!.enter!.map(({ player }) => player)).toEqual([bob])
    expect(last.chunks[1]!.leave).toEqual([bob, ann])
    expect(back.chunks[0]!.enter).toMatchObject([
      { name: 'ann', guest: true, skin: 0x83fa10cd, x: -20.5, y: 64, z: 70.25 },
    ])
    expect(held.chunks[0]!.enter).toMatchObject([
      { name: 'ann', skin: 0x83fa10cd, stance: { held: 1, sneaks: true }, x: -20.5, y: 64, z: 70.25 },
      { name: 'bob', stance: { held: 202, sneaks: false }, x: -20.5, y: 64, z: 70.25 },
    ])
    expect(decoder.extrapolate(1000)).toEqual([])
  })

  test('between frames, avatars are extrapolated once per tick, for two seconds', () => {
    const decoder = new AvatarDecoder(TICK)
    decoder.decode(bytesOf(golden.frames[0]!), 0)
    decoder.decode(bytesOf(golden.frames[1]!), 50)
    expect(decoder.extrapolate(80)).toEqual([])
    const x = (now: number) => decoder.extrapolate(now)[0]?.moves?.[0]!.x
    expect(x(100)).toBeCloseTo(-19.75 + 32 / 128, 9)
    expect(x(175)).toBeCloseTo(-19.75 + (2.5 * 32) / 128, 9)
    expect(x(50 + 40 * TICK)).toBeCloseTo(-19.75 + (40 * 32) / 128, 9)
    expect(decoder.extrapolate(50 + 42 * TICK)).toEqual([])
    decoder.removeChunk([-1, 2])
    expect(decoder.extrapolate(200)).toEqual([])
  })

  test.each([27, 30, 60, 24 * 60])('after %i minutes without a frame, the clock goes on', (minutes) => {
    const decoder = new AvatarDecoder(TICK)
    const frame = (tick: number) => Uint8Array.of(0x01, tick & 0xff, (tick >> 8) & 0xff)
    const first = 60_000
    decoder.decode(frame(first), 0)
    decoder.decode(frame(first + 20), 20 * TICK)
    const later = minutes * 60 * (1000 / TICK) + 1 // ticks
    for (const late of [0, 150, 0])
      expect(decoder.decode(frame(first + later), later * TICK + late).tick - (first - 0x10000)).toBe(later)
    expect(decoder.decode(frame(first + later + 8), (later + 8) * TICK).tick - (first - 0x10000)).toBe(later + 8)
  })

  const frame = (tick: number, ...parts: number[][]) => Uint8Array.from([0x01, tick, 0, ...parts.flat()])
  const place = (x: number) => [x & 0xff, x >> 8, 0, 16, 0, 2] // x in 1/32 block; y and z 64 and 16
  const enter = (chunk: number, x: number) => [
    [0x01, 2 * chunk, 0, 1, 0, ...new Array<number>(16).fill(7), 3, 98, 111, 98],
    [...place(x), 0, 0],
  ]
  const leave = (chunk: number) => [0x02, 2 * chunk, 0, 1, 0]
  const walk = [0x20, 0, 0, 0x80 | 11, 1, 0, 0x48, (31 * 32) % 256, 0, 32, 0] // in chunk 0, a quarter of a block a tick

  test('who enters the next chunk in a late frame glides there, from where they were predicted', () => {
    const decoder = new AvatarDecoder(TICK)
    decoder.decode(frame(0, ...enter(0, 31 * 32)), 0)
    decoder.decode(frame(1, walk), TICK)
    const shown = decoder.extrapolate(10 * TICK)[0]!.moves![0]!
    expect(shown.x).toBeCloseTo(31 + 9 / 4)
    const { chunks } = decoder.decode(frame(5, leave(0), ...enter(1, 0)), 10 * TICK)
    expect(chunks[0]!.leave).toHaveLength(1)
    expect(chunks[1]!.enter![0]!.x).toBeCloseTo(shown.x, 1)
    expect(decoder.extrapolate(11 * TICK)[0]!.moves![0]!.x).toBeCloseTo(shown.x - 0.2, 1)
    expect(decoder.extrapolate(60 * TICK)[0]!.moves![0]!.x).toBe(32) // a hidden page draws no frames meanwhile
    expect(decoder.extrapolate(61 * TICK)).toEqual([])
  })

  test('motion from before an avatar entered a chunk may come after that, and is ignored', () => {
    const decoder = new AvatarDecoder(TICK)
    decoder.decode(frame(0, ...enter(0, 31 * 32)), 0)
    const crossed = decoder.decode(frame(2, ...enter(1, 0), leave(0), walk), 2 * TICK)
    expect(crossed.chunks.filter(({ moves }) => moves).map(({ chunk }) => chunk)).toEqual([[1, 0]])
    expect(decoder.extrapolate(11 * TICK)[0]!.moves![0]!.x).toBe(32) // after a glide they stand
    expect(decoder.extrapolate(12 * TICK)).toEqual([])
    decoder.decode(frame(13, [0x20, 2, 0, ...walk.slice(3)]), 13 * TICK)
    expect(decoder.extrapolate(14 * TICK).map(({ chunk }) => chunk)).toEqual([[1, 0]])
    decoder.decode(frame(15, leave(1)), 15 * TICK)
    expect(decoder.extrapolate(16 * TICK)).toEqual([])
  })

  test('malformed frames are refused', () => {
    for (const hex of [
      '',
      '02ffff',
      '01000010',
      '0100008000',
      '010000200000900100',
      '01000002000080808010',
      '01000020',
    ]) {
      expect(() => new AvatarDecoder(TICK).decode(bytesOf(hex), 0), hex).toThrow()
    }
  })
})

describe('CBOR', () => {
  test('messages decode as in JSON', () => {
    golden.messages.forEach((hex, i) => {
      const want = { ...golden.json[i] }
      if (typeof want.data === 'string') want.data = fromBase64(want.data)
      const got = decodeBinary(bytesOf(hex)) as Record<string, unknown> | null
      expect(Object.keys(got!).sort()).toEqual(Object.keys(want).sort())
      for (const [key, value] of Object.entries(want)) {
        if (typeof value === 'number') expect(got![key], key).toBeCloseTo(value, 6)
        else expect(got![key], key).toEqual(value)
      }
    })
  })

  test('survives a round trip', () => {
    const message = { text: 'hello 🌍', small: 7, seq: 1767225600000001, below: -300, real: 1.57, yes: true }
    expect(decodeCBOR(encodeCBOR(message))).toEqual(message)
    expect(decodeCBOR(encodeCBOR({ type: 'x', key: undefined }))).toEqual({ type: 'x' })
  })

  test('a move has 33 bytes', () => {
    const bytes = encodeBinary({ type: 'move', x: 12.5, y: 64, z: -3.25, yaw: 1.5, pitch: -0.25 })
    expect(Buffer.from(bytes).toString('hex')).toBe(
      '02' + '0000000000002940' + '0000000000005040' + '0000000000000ac0' + '0000c03f' + '000080be',
    )
  })

  test('truncated values are refused', () => {
    for (const hex of ['', 'a1', 'a161', 'ff', '0000', '5f', 'a1010203', '9b00000000ffffffff']) {
      expect(() => decodeCBOR(bytesOf(hex)), hex).toThrow()
    }
  })
})
