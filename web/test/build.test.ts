import { describe, expect, test } from 'vitest'
import { MAX_FILE, decodeBlueprint, encodeBlueprint } from '../src/build/blueprint'
import { parseBuildCommand } from '../src/build/command'
import { copyBox, countBlocks, flipped, materialsOf, placed, turned, type Copy } from '../src/build/copy'
import { Gesture } from '../src/build/gesture'
import { isInReach, judge, type Place } from '../src/build/judge'
import { Pace, WINDOW } from '../src/build/pace'
import {
  BULK_MAX_BLOCKS,
  BULK_MAX_SIDE,
  MAX_SIDE,
  cornerInAir,
  countOf,
  hollowFrom,
  outlineOf,
  placesOf,
  problemOf,
  stateBetween,
} from '../src/build/shapes'
import { MAX_CHANGES, MAX_STEPS, UndoStack, inverseOf, type Change } from '../src/build/undo-stack'
import { Work, type Verdict, type Wanted } from '../src/build/work'
import { encodeRuns } from '../src/net/bulk'
import type { Vector } from '../src/player/ray'
import { DOOR, GATE, LADDER, OPEN_DOOR, OPEN_GATE, STAIRS, TORCH, TRAPDOOR } from '../src/world/block-table'
import { AIR, KINDS } from '../src/world/blocks'
import { BULK_BLOCKS } from '../src/world/edits'
import { VOID } from '../src/world/world'

const STONE = 1
const WATER = 5
const BEDROCK = 15
const BRICK = 19
const LAMP = 20
const POPPY = 32

/** Returns numbers from 0 to 1 that are the same in each run (mulberry32). */
function numbers(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

describe('shapes', () => {
  test('have the places that they count, each once, from below', () => {
    const next = numbers(1)
    for (let i = 0; i < 200; i++) {
      const corner = (): Vector => [0, 0, 0].map(() => Math.floor(next() * 9) - 4) as unknown as Vector
      const [a, b] = [corner(), corner()]
      for (const shape of ['line', 'box', 'hollow'] as const) {
        const places = placesOf(shape, a, b)
        expect(places.length).toBe(countOf(shape, a, b))
        expect(new Set(places.map((at) => at.join())).size).toBe(places.length)
        for (const end of [a, b]) expect(places).toContainEqual(end)
        const heights = places.map(([, y]) => y)
        expect(heights).toEqual([...heights].sort((p, q) => p - q))
      }
    }
  })

  test('a wall of 10 × 5, a hollow box and a diagonal line', () => {
    expect(placesOf('wall', [0, 3, 7], [9, 7, 7])).toHaveLength(50)
    expect(placesOf('hollow', [0, 0, 0], [2, 2, 2])).not.toContainEqual([1, 1, 1])
    expect(placesOf('line', [0, 2, 0], [4, 0, 2])).toEqual([
      [4, 0, 2],
      [3, 1, 2],
      [2, 1, 1],
      [1, 2, 1],
      [0, 2, 0],
    ])
  })

  test('too long and too many are refused before they are made', () => {
    expect(problemOf('line', [0, 0, 0], [MAX_SIDE - 1, 0, 0])).toBeNull()
    expect(problemOf('line', [0, 0, 0], [MAX_SIDE, 0, 0])).toContain('64 blocks')
    expect(problemOf('box', [0, 0, 0], [31, 31, 31])).toContain('8,192')
    expect(problemOf('hollow', [0, 0, 0], [31, 31, 31])).toBeNull()
    expect(problemOf('box', [0, 0, 0], [31, 31, 31], { blocks: BULK_MAX_BLOCKS, side: BULK_MAX_SIDE })).toBeNull()
  })

  test('a hollow is filled up to the place that was chosen, unless it is open', () => {
    const pit = (x: number, y: number, z: number) => y > 4 || (Math.abs(x) <= 1 && Math.abs(z) <= 1 && y > 0)
    const places = hollowFrom([0, 3, 0], pit)
    expect(places).toHaveLength(3 * 9)
    expect(Math.max(...(places ?? []).map(([, y]) => y))).toBe(3)
    expect(hollowFrom([0, 5, 0], pit)).toBeNull()
    expect(hollowFrom([9, 1, 9], pit)).toEqual([])
    // a tunnel that is longer than MAX_SIDE, with few blocks
    expect(hollowFrom([0, 0, 0], (_x, y, z) => y === 0 && z === 0)).toBeNull()
  })

  test('a corner in the air lies in the plane that the ray meets', () => {
    const eyes: Vector = [0.5, 11.6, 0.5]
    const to = ([x, y, z]: Vector): Vector => {
      const d = [x + 0.5 - eyes[0], y + 0.5 - eyes[1], z + 0.5 - eyes[2]] as const
      const length = Math.hypot(...d)
      return [d[0] / length, d[1] / length, d[2] / length]
    }
    for (const end of <Vector[]>[
      [4, 14, 3],
      [-2, 10, 3],
      [2, 17, 3],
    ])
      expect(cornerInAir(eyes, to(end), [-5, 10, 3], 64, 128)).toEqual(end)
    expect(cornerInAir(eyes, to([0, 300, 3]), [-5, 10, 3], 1e6, 128)).toEqual([0, 127, 3])
    expect(cornerInAir(eyes, [0, 1, 0], [-5, 10, 3], 64, 128)).toBeNull()
    expect(cornerInAir(eyes, to([0, 11, -3]), [0, 10, 3], 64, 128)).toBeNull() // behind the player
  })
})

describe('a gesture', () => {
  test('asks for two corners and an agreement, and goes back step by step', () => {
    const gesture = new Gesture('wall')
    expect([gesture.choose(), gesture.stage, gesture.corners]).toEqual([false, 'first', null])
    gesture.point([1, 2, 3])
    expect([gesture.choose(), gesture.stage]).toEqual([true, 'second'])
    gesture.point([5, 6, 3])
    expect(gesture.corners).toEqual([
      [1, 2, 3],
      [5, 6, 3],
    ])
    gesture.raise(1, 128)
    expect(gesture.corners?.[1]).toEqual([5, 6, 3])
    expect([gesture.choose(), gesture.stage]).toEqual([true, 'confirm'])
    gesture.point([9, 9, 9])
    gesture.raise(2, 128)
    expect(gesture.corners?.[1]).toEqual([5, 8, 3])
    gesture.raise(-99, 128)
    expect(gesture.corners?.[1]).toEqual([5, 0, 3])
    expect([gesture.back(), gesture.stage]).toEqual([true, 'second'])
    expect([gesture.back(), gesture.back()]).toEqual([true, false])
    for (const tool of ['fill', 'paste'] as const) {
      const one = new Gesture(tool)
      one.point([0, 0, 0])
      expect([one.choose(), one.stage]).toEqual([true, 'confirm'])
    }
  })
})

const change = (x: number, before: number, after: number): Change => ({ x, y: 0, z: 0, before, after })

describe('the undo stack', () => {
  test('steps are taken back in order, and a new one ends redoing', () => {
    const stack = new UndoStack()
    expect([stack.takeUndo(), stack.takeRedo()]).toEqual([null, null])
    stack.add([])
    stack.add([change(1, AIR, BRICK), change(2, AIR, BRICK)])
    stack.add([change(3, STONE, AIR)])
    const step = stack.takeUndo()
    expect(step).toEqual([change(3, STONE, AIR)])
    stack.pushRedo(step ?? [])
    expect(stack.sizes).toEqual({ undo: 1, redo: 1 })
    stack.add([change(4, AIR, LAMP)])
    expect(stack.sizes).toEqual({ undo: 2, redo: 0 })
    stack.extend(change(5, POPPY, AIR))
    expect(stack.takeUndo()).toEqual([change(4, AIR, LAMP), change(5, POPPY, AIR)])
    expect(inverseOf(stack.takeUndo() ?? [])).toEqual([change(2, BRICK, AIR), change(1, BRICK, AIR)])
  })

  test('what follows a change is of its step, even if others came in between', () => {
    const stack = new UndoStack()
    stack.extend(change(1, AIR, BRICK))
    stack.add([change(2, AIR, BRICK)])
    stack.extend(change(3, STONE, AIR), change(1, AIR, BRICK))
    stack.extend(change(4, STONE, AIR), change(9, AIR, BRICK))
    expect([stack.takeUndo(), stack.takeUndo(), stack.takeUndo()]).toEqual([
      [change(4, STONE, AIR)],
      [change(2, AIR, BRICK)],
      [change(1, AIR, BRICK), change(3, STONE, AIR)],
    ])
  })

  test('the oldest steps are dropped', () => {
    const stack = new UndoStack()
    for (let i = 0; i < MAX_STEPS + 10; i++) stack.add([change(i, AIR, BRICK)])
    expect(stack.sizes.undo).toBe(MAX_STEPS)
    const large = Array.from({ length: MAX_CHANGES / 2 + 1 }, (_, x) => change(x, AIR, BRICK))
    stack.add(large)
    stack.add(large)
    expect(stack.sizes.undo).toBe(1)
  })
})

describe('the pace', () => {
  /** Sends edits for some seconds to a server that allows a rate, and returns how many it accepted and refused. */
  const run = (rate: number, seconds: number) => {
    const pace = new Pace()
    let [bucket, accepted, refused] = [50, 0, 0]
    for (let now = 0; now < seconds * 1000; now += 50) {
      bucket = Math.min(50, bucket + rate / 20)
      while (pace.allows(now, 0)) {
        pace.sent()
        if (bucket >= 1) {
          bucket--
          accepted++
          pace.committed()
        } else {
          refused++
          pace.refused(now)
        }
      }
    }
    return { accepted, refused }
  }

  test('comes near the rate that the server allows, with few refusals', () => {
    for (const rate of [5, 20, 60, 300]) {
      const { accepted, refused } = run(rate, 60)
      expect(accepted, `at ${rate}`).toBeGreaterThan(rate * 60 * 0.6)
      expect(refused, `at ${rate}`).toBeLessThan(accepted * 0.06)
    }
  })

  test('keeps few edits under way', () => {
    const pace = new Pace()
    expect([pace.allows(0, WINDOW - 1), pace.allows(0, WINDOW)]).toEqual([true, false])
  })

  test('refusals of the same moment count once', () => {
    const pace = new Pace()
    for (let i = 0; i < 5; i++) pace.refused(1000 + i)
    expect(pace.perSecond).toBeCloseTo(14)
    pace.refused(3000)
    expect(pace.perSecond).toBeLessThan(10)
    expect(pace.allows(3000, 0)).toBe(false)
    expect(pace.allows(3500, 0)).toBe(true)
  })
})

const mayRetry = (refusal: string) => refusal === 'rate'

describe('work', () => {
  const wanted = (n: number): Wanted[] => Array.from({ length: n }, (_, x) => ({ x, y: 0, z: 0, block: BRICK }))
  const setup = (n: number, judged: (w: Wanted) => Verdict = () => 'now') => {
    const sent: number[] = []
    const work = new Work(wanted(n), { judge: judged, edit: ({ x }) => sent.push(x) && x, mayRetry })
    return { work, sent, pace: new Pace() }
  }

  test('sends at most a window, and more as answers come', () => {
    const { work, sent, pace } = setup(WINDOW + 2)
    work.advance(0, pace)
    work.advance(10, pace)
    expect(sent).toHaveLength(WINDOW)
    expect(work.committed(99, change(0, AIR, BRICK))).toBe(false)
    for (const x of [...sent]) expect(work.committed(x, change(x, AIR, BRICK))).toBe(true)
    expect(work.committed(0, change(0, AIR, BRICK))).toBe(false)
    work.advance(20, pace)
    expect([sent.length, work.done, work.finished]).toEqual([WINDOW + 2, WINDOW, false])
    for (const x of [WINDOW, WINDOW + 1]) work.committed(x, change(x, AIR, BRICK))
    expect([work.done, work.finished, work.changes.length]).toEqual([WINDOW + 2, true, WINDOW + 2])
  })

  test('what is out of reach waits, and what stays is counted', () => {
    const verdicts: Verdict[] = ['later', 'there', 'skip', 'now']
    const { work, sent, pace } = setup(4, ({ x }) => verdicts[x] ?? 'now')
    work.advance(0, pace)
    expect([sent, work.done, work.skipped, work.stuck]).toEqual([[3], 2, 1, false])
    work.committed(3, change(3, AIR, BRICK))
    expect([work.stuck, work.finished]).toEqual([true, false])
    verdicts[0] = 'now'
    work.advance(10, pace)
    expect([sent, work.stuck]).toEqual([[3, 0], false])
  })

  test('gives up once everything is refused', () => {
    const { work, sent, pace } = setup(100)
    for (let now = 0; now < 5000 && !work.finished; now += 100) {
      work.advance(now, pace)
      for (const x of sent.splice(0)) work.reject(x, 'rate')
    }
    expect([work.finished, work.refusal]).toEqual([true, 'rate'])
    expect(work.refused).toBeLessThan(2 * WINDOW)
    expect(work.missed).toHaveLength(100) // an undo keeps them
    expect(work.reject(0, 'rate')).toBe(false)
  })

  test('what may be possible later is kept, whatever was refused for good', () => {
    const { work, sent, pace } = setup(4)
    work.advance(0, pace)
    const refusals = ['claimed', 'rate', 'inside_player', 'not_allowed']
    refusals.forEach((refusal, i) => work.reject(sent[i] ?? -1, refusal))
    expect(work.missed.map(({ x }) => x)).toEqual([1, 2])
  })
})

describe('bulk work', () => {
  test('sends many blocks of a chunk at once, and again what was refused because something had changed', () => {
    const wanted = Array.from({ length: 4000 }, (_, i): Wanted => ({ x: (i % 64) - 32, y: i >> 6, z: 5, block: BRICK }))
    const sent: (readonly Wanted[])[] = []
    let judged: Verdict = 'now'
    const work = new Work(wanted, {
      judge: ({ x }) => (x === 7 ? judged : 'now'),
      edit: () => null,
      editBulk: (some) => sent.push(some),
      mayRetry,
    })
    const commit = (seq: number) =>
      work.committed(seq, ...(sent[seq - 1] ?? []).map(({ x, y, z }) => ({ x, y, z, before: AIR, after: BRICK })))
    judged = 'later'
    work.advance(0, new Pace())
    expect(sent.map((some) => some.length)).toEqual([1536, 480, 1536, 386])
    for (const some of sent) expect(new Set(some.map(({ x }) => x < 0)).size).toBe(1)
    expect(work.reject(1, 'changed')).toBe(true)
    expect([work.refused, work.left.length]).toEqual([0, 1536 + 62])
    judged = 'skip'
    work.advance(0, new Pace())
    for (const seq of [2, 3, 4, 5]) expect(commit(seq)).toBe(true)
    expect([work.finished, work.changes.length, work.skipped, work.done]).toEqual([true, 3938, 62, 4000])
  })

  test('ends when the same is refused again and again', () => {
    let seq = 0
    const work = new Work([{ x: 0, y: 0, z: 0, block: BRICK }], {
      judge: () => 'now',
      edit: () => null,
      editBulk: () => ++seq,
      mayRetry,
    })
    for (let i = 0; i < 1000 && !work.finished; i++) {
      work.advance(0, new Pace())
      work.reject(seq, 'changed')
    }
    expect([work.finished, work.refused, work.refusal, work.missed.length]).toEqual([true, 1, 'changed', 1])
  })
})

test('the runs of a bulk edit', () => {
  const to = (x: number, y: number, before: number, after: number) => ({ x, y, z: -32, before, after })
  // as in wire/sessionmsg/session_test.go: one block at index 1024
  expect(encodeRuns([to(-32, 1, 0, 1)])).toBe('8008010001')
  expect(encodeRuns([to(34, 2, 0, 1), to(33, 1, 5, 200), to(35, 2, 0, 1), to(36, 2, 1, 0)])).toBe(
    '81080105c801800802000100010100',
  )
  // the worst: nothing is equal to the block beside it
  const worst = Array.from({ length: BULK_BLOCKS }, (_, i) => ({
    x: 0,
    y: Math.floor(i / 2),
    z: (i % 2) * 31,
    before: 200,
    after: 201 + (i % 2),
  }))
  expect(encodeRuns(worst).length / 2).toBeLessThanOrEqual(12_288)
})

describe('commands', () => {
  const named = (name: string) => ({ stone: STONE, 'red wool': 70, air: AIR })[name] ?? -1
  test.each([
    ['fill stone', { name: 'fill', block: STONE }],
    ['FILL Red_Wool ', { name: 'fill', block: 70 }],
    ['replace stone air', { name: 'replace', from: STONE, to: AIR }],
    ['replace stone gold', 'gold'],
    ['pos1', { name: 'pos1', at: null }],
    ['pos2 1 -2 3', { name: 'pos2', at: [1, -2, 3] }],
    ['pos2 1 2', null],
    ['pos2 1 2 x', null],
    ['sphere stone 5', { name: 'sphere', block: STONE, radius: 5 }],
    ['shell stone 0', null],
    ['sphere stone 65', null],
    ['flip z', { name: 'flip', axis: 2 }],
    ['flip', null],
    ['undo', { name: 'undo' }],
    ['undo 3', null],
    ['', null],
  ])('%s', (line, want) => {
    expect(parseBuildCommand(line, named)).toEqual(want)
  })
})

test('spheres', () => {
  const at = (shape: 'sphere' | 'shell') => placesOf(shape, [-5, 0, -5], [5, 10, 5])
  expect(at('sphere').length).toBeGreaterThan(0.9 * (4 / 3) * Math.PI * 5.5 ** 3)
  expect(at('sphere').length).toBeLessThan(1.1 * (4 / 3) * Math.PI * 5.5 ** 3)
  const has = new Set(at('sphere').map((p) => p.join()))
  for (const [x, y, z] of at('sphere'))
    expect([has.has([-x, y, z].join()), has.has([x, 10 - y, z].join())]).toEqual([true, true])
  const shell = new Set(at('shell').map((p) => p.join()))
  expect([shell.has('5,5,0'), shell.has('0,5,0')]).toEqual([true, false])
  expect(placesOf('sphere', [1, 2, 3], [1, 2, 3])).toEqual([[1, 2, 3]])
})

test('the outline of many blocks', () => {
  const box = placesOf('box', [0, 0, 0], [9, 9, 9]).map(([x, y, z]) => ({ x, y, z }))
  expect(outlineOf(box)).toHaveLength(12 * 8 + 8)
})

describe('judging a place', () => {
  const place = (there: number, more: Partial<Place> = {}): Place => ({
    blocks: { get: () => there },
    replaces: false,
    isPending: () => false,
    mayBuild: () => true,
    isInReach: () => true,
    isOccupied: () => false,
    ...more,
  })
  const at = { x: 1, y: 2, z: 3 }

  test('building', () => {
    const verdict = (there: number, more?: Partial<Place>, block = BRICK) => judge({ ...at, block }, place(there, more))
    expect([AIR, WATER, POPPY].map((there) => verdict(there))).toEqual(['now', 'now', 'now'])
    expect([BRICK, STONE, BEDROCK, VOID].map((there) => verdict(there))).toEqual(['there', 'skip', 'skip', 'later'])
    expect([STONE, BEDROCK].map((there) => verdict(there, { replaces: true }))).toEqual(['now', 'skip'])
    expect(verdict(AIR, { isPending: () => true })).toBe('later')
    expect(verdict(AIR, { mayBuild: () => false })).toBe('skip')
    expect(verdict(AIR, { isInReach: () => false })).toBe('later')
    expect(verdict(AIR, { isOccupied: () => true })).toBe('later')
  })

  test('clearing leaves water, and bedrock', () => {
    const verdict = (there: number) => judge({ ...at, block: AIR }, place(there))
    expect([STONE, POPPY, WATER, AIR, BEDROCK].map(verdict)).toEqual(['now', 'now', 'there', 'there', 'skip'])
  })

  test('undoing changes only what is still as the player made it', () => {
    const verdict = (there: number) => judge({ ...at, block: STONE, instead: BRICK }, place(there))
    expect([BRICK, STONE, LAMP, AIR].map(verdict)).toEqual(['now', 'there', 'skip', 'skip'])
  })

  test('reach is measured to the nearest point', () => {
    expect(isInReach([0.5, 10, 0.5], 8, 8, 10, 0)).toBe(true)
    expect(isInReach([0.5, 10, 0.5], 8, 9, 10, 0)).toBe(false)
    expect(isInReach([0.5, 10, 0.5], 8, -8, 10, 0)).toBe(true)
    expect(isInReach([0.5, 10, 0.5], 8, 0, 10, 0)).toBe(true)
  })
})

/** Returns a random copy with runs of equal blocks. */
function randomCopy(next: () => number): Copy {
  const side = () => 1 + Math.floor(next() * 6)
  const sides = [side(), side(), side()] as const
  let block = AIR
  const blocks = Uint16Array.from({ length: sides[0] * sides[1] * sides[2] }, () => {
    if (next() < 0.4) block = [AIR, STONE, BRICK, LAMP, POPPY][Math.floor(next() * 5)] ?? AIR
    return block
  })
  return { sides, blocks }
}

describe('copies', () => {
  test('a turn puts each block where it belongs, and four are none', () => {
    const copy: Copy = { sides: [2, 1, 3], blocks: Uint16Array.of(STONE, BRICK, AIR, LAMP, AIR, POPPY) }
    expect(turned(copy)).toEqual({ sides: [3, 1, 2], blocks: Uint16Array.of(AIR, AIR, STONE, POPPY, LAMP, BRICK) })
    const next = numbers(2)
    for (let i = 0; i < 50; i++) {
      const random = randomCopy(next)
      expect(turned(turned(turned(turned(random))))).toEqual(random)
      expect(countBlocks(turned(random))).toBe(countBlocks(random))
    }
  })

  test('a turn turns stairs, and what hangs on a wall', () => {
    for (const kind of [STAIRS, TORCH + 1, LADDER, DOOR, OPEN_DOOR, GATE, OPEN_GATE, TRAPDOOR, TRAPDOOR + 12]) {
      const east = KINDS.findIndex(({ shape }) => shape === kind)
      const directions = [east]
      for (let i = 0; i < 4; i++)
        directions.push(turned({ sides: [1, 1, 1], blocks: Uint16Array.of(directions[i] ?? AIR) }).blocks[0] ?? AIR)
      expect(directions).toEqual([0, 2, 1, 3, 0].map((direction) => east + direction)) // +x +z −x −z +x
    }
  })

  test('what is copied and placed at the same place is the same', () => {
    const get = (x: number, y: number, z: number) => (y === 0 ? BEDROCK : (x + y + z) % 2 === 0 ? BRICK : AIR)
    const copy = copyBox({ get }, { min: [-1, 0, 5], max: [1, 2, 7] })
    const blocks = placed(copy, [0, 0, 6])
    expect(blocks).toHaveLength(countBlocks(copy))
    expect(blocks.length).toBeGreaterThan(0)
    for (const { x, y, z, block } of blocks) expect([block, y > 0]).toEqual([get(x, y, z), true])
  })
})

test('tools turn stairs as the player looks, and up along a line that rises', () => {
  const stairs = KINDS.findIndex(({ shape }) => shape === STAIRS)
  const south: Vector = [0.1, -0.5, 0.8]
  const state = (shape: 'line' | 'box', a: Vector, b: Vector) => stateBetween(shape, a, b, stairs, south) - stairs
  expect(state('box', [0, 0, 0], [5, 5, 0])).toBe(2)
  expect(state('line', [0, 0, 0], [5, 0, 0])).toBe(2)
  expect(state('line', [0, 0, 0], [5, 5, 0])).toBe(0)
  expect(state('line', [0, 5, 0], [5, 0, 0])).toBe(1)
  expect(state('line', [0, 0, 0], [0, 5, 0])).toBe(2)
  const ladder = KINDS.findIndex(({ shape }) => shape === LADDER)
  expect(stateBetween('wall', [0, 0, 0], [0, 5, 0], ladder, south)).toBe(ladder)
  expect(stateBetween(null, [0, 0, 0], [0, 5, 0], BRICK, south)).toBe(BRICK)
})

test('a mirror image has what faces the other way, and twice mirrored is the same', () => {
  const next = numbers(9)
  for (let i = 0; i < 20; i++) {
    const copy = randomCopy(next)
    for (const axis of [0, 1, 2] as const) expect(flipped(flipped(copy, axis), axis)).toEqual(copy)
  }
  const stairs = KINDS.findIndex(({ shape }) => shape === STAIRS) // they rise towards +x
  const copy: Copy = { sides: [2, 1, 1], blocks: Uint16Array.of(stairs, BRICK) }
  expect([...flipped(copy, 0).blocks]).toEqual([BRICK, stairs + 1])
  expect([...flipped(copy, 2).blocks]).toEqual([stairs, BRICK])
})

test('the materials of a copy', () => {
  const copy: Copy = { sides: [4, 1, 1], blocks: Uint16Array.of(AIR, STONE, BRICK, BRICK) }
  expect(materialsOf(copy, (block) => `block ${block}`)).toBe('block,count\r\n"block 19",2\r\n"block 1",1\r\n')
})

describe('blueprints', () => {
  test('are read as they were written', () => {
    const next = numbers(3)
    for (let i = 0; i < 200; i++) {
      const copy = randomCopy(next)
      expect(decodeBlueprint(encodeBlueprint(copy))).toEqual(copy)
    }
    const sides = [64, 16, 64] as const
    const worst = { sides, blocks: Uint16Array.from({ length: BULK_MAX_BLOCKS }, (_, i) => (i % 2 ? BRICK : AIR)) }
    expect(encodeBlueprint(worst).length).toBeLessThan(MAX_FILE)
    expect(decodeBlueprint(encodeBlueprint(worst))).toEqual(worst)
  })

  test('errors say what is wrong', () => {
    const whole = {
      format: 'voxeld blueprint',
      version: 1,
      sides: [2, 1, 1],
      palette: [AIR, BRICK],
      runs: [1, 0, 1, 1],
    }
    const decode = (more: object) => () => decodeBlueprint(JSON.stringify({ ...whole, ...more }))
    expect(decode({})()).toEqual({ sides: [2, 1, 1], blocks: Uint16Array.of(AIR, BRICK) })
    for (const [more, message] of [
      [{ format: 'x' }, 'not a blueprint'],
      [{ version: 2 }, 'newer client'],
      [{ sides: [2, 1] }, 'sides'],
      [{ sides: [257, 1, 1] }, 'sides'],
      [{ sides: [64, 64, 64] }, '65,536'],
      [{ palette: [AIR, 9999] }, '9999'],
      [{ palette: [AIR, BEDROCK] }, '15'],
      [{ palette: 'x' }, 'palette'],
      [{ runs: [1, 0, 1] }, 'runs'],
      [{ runs: [1, 0, 2, 1] }, 'run 1'],
      [{ runs: [1, 0, 1, 2] }, 'run 1'],
      [{ runs: [0, 0, 2, 1] }, 'run 0'],
      [{ runs: [1, 0] }, '1 of 2'],
    ] as const)
      expect(decode(more), JSON.stringify(more)).toThrow(message)
    for (const text of ['', 'null', '7', '[]', '{', 'x'.repeat(MAX_FILE + 1)])
      expect(() => decodeBlueprint(text)).toThrow(/blueprint/)
  })

  test('a damaged file gives an error or a copy within the limits', () => {
    const next = numbers(4)
    let read = 0
    for (let i = 0; i < 3000; i++) {
      let text = encodeBlueprint(randomCopy(next))
      for (let n = 1 + Math.floor(next() * 3); n > 0; n--) {
        const at = Math.floor(next() * text.length)
        const put = '0123456789-.e[]{},":x'[Math.floor(next() * 21)] ?? ''
        text = text.slice(0, at) + (next() < 0.3 ? '' : put) + text.slice(at + (next() < 0.3 ? 0 : 1))
      }
      try {
        const { sides, blocks } = decodeBlueprint(text)
        read++
        expect(blocks.length).toBe(sides[0] * sides[1] * sides[2])
        expect(blocks.length).toBeLessThanOrEqual(BULK_MAX_BLOCKS)
      } catch (reason) {
        expect((reason as Error).message).toMatch(/^This (file|blueprint) /)
      }
    }
    expect(read).toBeGreaterThan(100)
  })
})
