import { describe as group, expect, test, vi } from 'vitest'
import { PastControl, changesOf } from '../src/game/past-control'
import { describe } from '../src/hud/past-bar'
import type { Screen } from '../src/hud/hud'
import { decode, type HistoryPage } from '../src/net/protocol'
import { AIR } from '../src/world/blocks'
import { Past, type PastChange } from '../src/world/past'
import { Chunk, World } from '../src/world/world'

const DIRT = 3
const BRICK = 19

function worldOf(...chunks: [x: number, z: number][]): World {
  const world = new World()
  for (const [x, z] of chunks) world.put(new Chunk(x, z, [0, 0, 0, 0]))
  return world
}

/** Returns the blocks at the corner of a chunk. */
function blocksOf(world: World): string {
  const all: number[] = []
  for (let y = 0; y < 42; y++) for (let z = 0; z < 4; z++) for (let x = 0; x < 4; x++) all.push(world.get(x, y, z))
  return all.join()
}

/** Changes random blocks of a world, and returns the changes, and the blocks after each of them. */
function build(world: World, count: number): { changes: PastChange[]; after: string[] } {
  let seed = 7
  const next = (below: number) => (seed = (seed * 48271) % 2147483647) % below
  const changes: PastChange[] = []
  const after = [blocksOf(world)]
  for (let i = 0; i < count; i++) {
    const [x, y, z, block] = [next(3), next(40), next(3), next(4)]
    changes.push({ time: i, name: 'ada', x, y, z, before: world.get(x, y, z), after: block })
    world.set(x, y, z, block)
    after.push(blocksOf(world))
  }
  return { changes, after }
}

const near = (x: number, z: number) => x >= 0 && x < 32 && z >= 0 && z < 32

group('the past', () => {
  test('shows the blocks as they were, backwards and forwards', () => {
    const world = worldOf([0, 0])
    const { changes, after } = build(world, 40)
    const past = new Past(world, changes, near)
    for (const at of [...Array(41).keys()].reverse().concat([...Array(41).keys()], [20, 3, 39, 0, 40])) {
      past.seek(at)
      expect(past.at).toBe(at)
      expect(blocksOf(world) === after[at], `after ${at} changes`).toBe(true)
    }
    past.seek(17)
    past.end()
    expect(blocksOf(world) === after[40]).toBe(true)
    expect(world.hold).toBeNull()
  })

  test('keeps changes that come meanwhile, and shows them at the end', () => {
    const world = worldOf([0, 0], [1, 0])
    const changes = [
      { time: 1, name: 'ada', x: 1, y: 5, z: 1, before: AIR, after: BRICK },
      { time: 2, name: 'ada', x: 2, y: 5, z: 1, before: AIR, after: BRICK },
    ]
    for (const { x, y, z, after } of changes) world.set(x, y, z, after)
    const past = new Past(world, changes, near)
    world.set(9, 9, 9, DIRT)
    expect(world.get(9, 9, 9), 'nothing of the past is shown yet').toBe(DIRT)
    past.seek(0)
    expect(world.set(1, 5, 1, DIRT)).toBe(true) // replaces a block of the past
    world.set(4, 4, 4, DIRT) // where nothing has changed
    world.set(40, 5, 1, DIRT) // in a chunk that shows the present
    const seen = () => [world.get(1, 5, 1), world.get(2, 5, 1), world.get(4, 4, 4), world.get(40, 5, 1)]
    expect(seen()).toEqual([AIR, AIR, AIR, DIRT])
    past.seek(1)
    expect(seen()).toEqual([BRICK, AIR, AIR, DIRT])
    past.end()
    expect(seen()).toEqual([DIRT, BRICK, DIRT, DIRT])
    world.set(1, 5, 1, AIR)
    expect(world.get(1, 5, 1)).toBe(AIR)
  })

  test.each([DIRT, AIR])('is shown in chunks that come again, and their blocks are kept: %i', (now) => {
    const world = worldOf([0, 0])
    const changes = [{ time: 1, name: 'ada', x: 1, y: 5, z: 1, before: AIR, after: BRICK }]
    world.set(1, 5, 1, BRICK)
    const past = new Past(world, changes, near)
    world.listen({
      chunkChanged: (chunk) => past.chunkChanged(chunk),
      chunkRemoved: () => undefined,
      blockChanged: () => undefined,
    })
    past.seek(0)
    const chunk = new Chunk(0, 0, [0, 0, 0, 0])
    chunk.set(1, 5, 1, BRICK)
    chunk.set(1, 5, 1, now) // also if it is what is shown
    world.put(chunk)
    expect(world.get(1, 5, 1)).toBe(AIR)
    past.end()
    expect(world.get(1, 5, 1)).toBe(now)
  })
})

group('a page of the history', () => {
  test('is decoded', () => {
    const page = decode(
      '{"type":"history","min":[0,0,0],"max":[95,127,95],"until":0,"skip":0,"names":["ada","eve"],"changes":[9,1,4,5,6,19,0,7,0,4,5,6,0,19]}',
    ) as HistoryPage
    expect(changesOf(page)).toEqual([
      { time: 9, name: 'eve', x: 4, y: 5, z: 6, before: BRICK, after: AIR },
      { time: 7, name: 'ada', x: 4, y: 5, z: 6, before: AIR, after: BRICK },
    ])
    expect(changesOf({ names: null, changes: null })).toEqual([])
  })

  test('is described by the change that came last', () => {
    const at = { x: 0, y: 0, z: 0 }
    const changes = [
      { ...at, time: 0, name: 'ada', before: AIR, after: BRICK },
      { ...at, time: 60_000, name: 'eve', before: BRICK, after: AIR },
      { ...at, time: 7_200_000, name: 'ada', before: DIRT, after: BRICK },
    ]
    const line = (n: number) => describe(changes, n, 7_230_000)
    expect(line(0)).toEqual({ line: 'Before the first change', when: '2 h ago' })
    expect(line(1).line).toBe('ada placed Brick')
    expect(line(2).line).toBe('eve broke Brick')
    expect(line(2).when).toMatch(/^1 h ago, /)
    expect(line(3).line).toBe('ada replaced Dirt with Brick')
    expect(line(3).when).toMatch(/^just now, /)
  })
})

group('the time machine', () => {
  const setup = (usage: string | null = 'X,Y,Z [X,Y,Z [UNTIL [SKIP]]]') => {
    const store = { screen: 'play' as Screen }
    const world = worldOf([0, 0])
    world.height = 64
    const waiting: unknown[] = []
    const session = { sendCommand: vi.fn(), usageOf: () => usage, edits: { waiting }, connection: { open: true } }
    const screens = { show: vi.fn((screen: Screen) => void (store.screen = screen)), resume: vi.fn() }
    screens.resume.mockImplementation(() => void (store.screen = 'play'))
    const messages = { toast: vi.fn() }
    const bar = { load: vi.fn(), fail: vi.fn(), begin: vi.fn(), show: vi.fn(), setPlaying: vi.fn() }
    const players = { visible: true }
    const control = new PastControl(
      store,
      world,
      { x: 5, z: 5 },
      session as unknown as ConstructorParameters<typeof PastControl>[3],
      screens,
      messages,
      bar,
      players,
    )
    const page = (until: number, skip: number, more: boolean, ...changes: number[][]): HistoryPage => ({
      type: 'history',
      min: [-32, 0, -32],
      max: [63, 63, 63],
      until,
      skip,
      names: ['ada'],
      changes: changes.flat(),
      more,
    })
    return { store, world, waiting, session, screens, messages, bar, players, control, page }
  }
  const frame = (now: number, dt = 0.1) => ({ now, dt })

  test('asks page by page, at the rate of commands, once the own edits are there', () => {
    const { control, waiting, session, page, bar } = setup()
    waiting.push({})
    control.open()
    control.update(frame(5000))
    expect(session.sendCommand).not.toHaveBeenCalled()
    waiting.pop()
    control.update(frame(5100))
    expect(session.sendCommand).toHaveBeenLastCalledWith('inspect -32,0,-32 63,63,63 0 0')
    control.answer(page(9, 9, false)) // of another question
    expect(control.state.loading).toBe(true)
    control.answer(page(0, 0, true, [90, 0, 1, 1, 1, 0, 3], [80, 0, 1, 2, 1, 0, 3], [80, 0, 1, 3, 1, 0, 3]))
    control.update(frame(5200))
    expect(session.sendCommand).toHaveBeenCalledTimes(1)
    control.update(frame(6100))
    expect(session.sendCommand).toHaveBeenLastCalledWith('inspect -32,0,-32 63,63,63 80 2')
    control.answer(page(80, 2, false, [80, 0, 1, 4, 1, 0, 3]))
    expect(control.state).toEqual({ loading: false, changes: 4, at: 4, playing: false })
    expect(bar.begin.mock.lastCall?.slice(1)).toEqual([false, false])
  })

  test('plays from the beginning to now, and puts everything back', () => {
    const { control, page, world, screens, bar, players } = setup()
    for (const y of [1, 2, 3]) world.set(1, y, 1, DIRT)
    control.open()
    control.update(frame(5000))
    control.answer(page(0, 0, false, ...[3, 2, 1].map((y) => [y, 0, 1, y, 1, 0, DIRT])))
    const column = () => [1, 2, 3].map((y) => world.get(1, y, 1))
    expect(players.visible).toBe(true)
    control.seek(1)
    expect(column()).toEqual([DIRT, AIR, AIR])
    expect(players.visible).toBe(false) // they were not there
    control.seek(3)
    expect(players.visible).toBe(true)
    control.togglePlaying()
    const seen = new Set([column().join()])
    for (let i = 0; control.state.playing; i++) {
      expect(i).toBeLessThan(100)
      control.update(frame(5000 + i))
      seen.add(column().join())
    }
    expect([...seen]).toEqual(['0,0,0', '3,0,0', '3,3,0', '3,3,3'])
    control.seek(0)
    expect(bar.show).toHaveBeenLastCalledWith(0, expect.any(Number))
    expect(players.visible).toBe(false)
    control.leave()
    expect(players.visible).toBe(true)
    expect(column()).toEqual([DIRT, DIRT, DIRT])
    expect(screens.resume).toHaveBeenCalledOnce()
    control.answer(page(0, 0, false, [1, 0, 1, 1, 1, 0, DIRT])) // comes too late
    expect(control.state.changes).toBe(0)
  })

  test('puts everything back when another screen opens', () => {
    const { control, page, world, store, players } = setup()
    world.set(1, 1, 1, DIRT)
    control.open()
    control.update(frame(5000))
    control.answer(page(0, 0, false, [1, 0, 1, 1, 1, 0, DIRT]))
    control.seek(0)
    expect(world.get(1, 1, 1)).toBe(AIR)
    store.screen = 'title'
    control.update(frame(5100))
    expect(world.get(1, 1, 1)).toBe(DIRT)
    expect(players.visible).toBe(true)
  })

  test('does not open after the player has left', () => {
    const { control, store, screens } = setup()
    store.screen = 'title'
    control.open()
    expect(screens.show).not.toHaveBeenCalled()
  })

  test('says why it shows nothing', () => {
    for (const [usage, text] of [
      [null, 'Your role may not see who changed blocks.'],
      ['X,Y,Z', 'This node cannot show the past: it runs an earlier version.'],
    ] as const) {
      const { control, store, messages } = setup(usage)
      control.open()
      expect(messages.toast).toHaveBeenLastCalledWith(text)
      expect(store.screen).toBe('play')
    }
    const { control, bar } = setup()
    control.open()
    control.update(frame(5000))
    control.update(frame(30_000))
    expect(bar.fail).toHaveBeenLastCalledWith('The node did not answer. Try again later.')
    expect(control.state.loading).toBe(false)
  })
})
