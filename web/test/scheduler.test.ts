import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { EditBlocks, MeshChunk, Meshed, MeshedSection, ToWorker } from '../src/mesh/messages'
import { MeshPool, holdersOf, ownerOf } from '../src/mesh/pool'
import { NOTHING } from '../src/mesh/mesher'
import { MeshScheduler } from '../src/mesh/scheduler'
import type { Section } from '../src/world/codec'
import { SIZE } from '../src/world/coords'
import { Chunk, World } from '../src/world/world'

const STONE = 1
const GLASS = 18
const SECTIONS = 3
const QUIET_MS = 501

type Job = MeshChunk | EditBlocks

/** Workers that finish a job when the test says so. */
class Workers {
  readonly size = 2
  readonly posted: { worker: number; message: ToWorker }[] = []
  constructor(
    private readonly done: (answer: Meshed) => void,
    readonly restarted: (worker: number) => void,
  ) {}
  post(worker: number, message: ToWorker) {
    this.posted.push({ worker, message: structuredClone(message) })
  }

  get jobs(): Job[] {
    return this.posted.flatMap(({ message }) => (message.type === 'mesh' || message.type === 'edit' ? [message] : []))
  }

  /** Finishes a job with meshes of these sections, or of all that it asks for. */
  finish(job: Job, sections = job.type === 'mesh' ? this.sectionsOf(job) : []) {
    this.posted.splice(
      this.posted.findIndex(({ message }) => 'job' in message && message.job === job.job),
      1,
    )
    this.done({ job: job.job, sections, duration: 1 })
  }

  /** Returns the latest version of a chunk that was put into its worker. */
  versionOf(x: number, z: number): number {
    const version = this.posted.findLast(
      ({ message }) => message.type === 'put' && message.x === x && message.z === z,
    )?.message
    return version?.type === 'put' ? version.version : 0
  }

  section(x: number, z: number, section: number): MeshedSection {
    const version = this.versionOf(x, z)
    return { x, z, version, section, mesh: NOTHING }
  }

  private sectionsOf({ x, z }: MeshChunk): MeshedSection[] {
    return [0, 1, 2].map((section) => this.section(x, z, section))
  }
}

test('a worker whose script cannot be loaded is replaced after some seconds', () => {
  const started: FakeWorker[] = []
  class FakeWorker {
    onerror: (() => void) | null = null
    readonly posted: unknown[] = []
    readonly terminate = vi.fn()
    constructor() {
      started.push(this)
    }
    postMessage(message: unknown) {
      this.posted.push(message)
    }
  }
  vi.useFakeTimers()
  vi.stubGlobal('window', globalThis)
  vi.stubGlobal('Worker', FakeWorker)
  const restarted = vi.fn()
  const pool = new MeshPool(2, vi.fn(), restarted)
  const fail = () => started.at(-1)?.onerror?.()
  for (let i = 1; i <= 3; i++) {
    fail()
    fail() // once is enough
    expect(started.at(-1)?.terminate).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(1000)
    expect(started).toHaveLength(1 + i)
    vi.advanceTimersByTime(4000)
    expect(started).toHaveLength(2 + i)
  }
  expect(restarted.mock.calls).toEqual([[1], [1], [1]])
  pool.post(1, { type: 'remove', x: 0, z: 0 })
  expect(started.map(({ posted }) => posted.length)).toEqual([0, 0, 0, 0, 1])
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

describe('mesh scheduler', () => {
  let world: World
  let workers: Workers
  let scheduler: MeshScheduler
  let shown: string[]
  const failed = vi.fn()
  const sink = {
    show: (x: number, z: number, section: number) => shown.push(`${x},${z} ${section}`),
    remove: vi.fn(),
  }

  beforeEach(() => {
    vi.useFakeTimers()
    shown = []
    world = new World()
    world.height = SECTIONS * SIZE
    scheduler = new MeshScheduler(world, sink, failed, (...callbacks) => (workers = new Workers(...callbacks)))
  })
  afterEach(() => void vi.useRealTimers())

  /** Adds a chunk whose lowest section consists of one block. */
  function put(x: number, z: number, block = STONE) {
    world.put(new Chunk(x, z, [block, ...Array<Section>(SECTIONS - 1).fill(0)]))
  }

  function putSquare(radius: number) {
    for (let z = -radius; z <= radius; z++) for (let x = -radius; x <= radius; x++) put(x, z)
  }

  /** Finishes all jobs; returns the chunks in the order in which they were meshed. */
  function drain(): string[] {
    for (let job = workers.jobs[0]; job; job = workers.jobs[0]) workers.finish(job)
    return [...new Set(shown.splice(0).map((section) => section.split(' ')[0]!))]
  }

  /** Finishes all jobs; returns the chunks that were meshed for being seen nearby. */
  function drainNear(): string[] {
    const near: string[] = []
    for (let job = workers.jobs[0]; job; job = workers.jobs[0]) {
      if (job.type === 'mesh' && job.near) near.push(`${job.x},${job.z}`)
      workers.finish(job)
    }
    return near
  }

  test('a chunk waits for its eight neighbours', () => {
    putSquare(1)
    world.remove(1, 1)
    scheduler.pump(16, 16)
    expect(workers.jobs).toEqual([])
    put(1, 1)
    scheduler.pump(16, 16)
    expect(drain()).toEqual(['0,0'])
    expect(scheduler.backlog).toBe(8) // the others have neighbours that are missing
  })

  test('once no more chunks arrive, the chunks at the edge are meshed, too', () => {
    putSquare(1)
    scheduler.pump(16, 16)
    drain()
    vi.advanceTimersByTime(QUIET_MS)
    scheduler.pump(16, 16)
    expect(drain()).toHaveLength(8)
    expect([scheduler.backlog, scheduler.meshed]).toEqual([0, 9])
  })

  test('each worker meshes its own chunks, the nearest to the camera first, and has at most two jobs', () => {
    putSquare(3)
    scheduler.pump(1.5 * SIZE, 0.5 * SIZE) // in chunk (1, 0)
    const started = workers.posted.filter(({ message }) => message.type === 'mesh')
    expect(started.map(({ worker }) => worker).sort()).toEqual([0, 0, 1, 1])
    for (const { worker, message } of started) {
      expect(message.type === 'mesh' && ownerOf(message.x, 2)).toBe(worker)
    }
    const order = drain()
    expect(order).toHaveLength(25)
    const away = order
      .map((chunk) => chunk.split(',').map(Number) as [number, number])
      .filter(([x]) => ownerOf(x, 2) === ownerOf(1, 2))
      .map(([x, z]) => (x - 1) ** 2 + z ** 2)
    expect(away).toEqual([...away].sort((a, b) => a - b))
    expect(order[0]).toBe('1,0')
  })

  test('chunks near the camera are meshed for it, and others once it comes near', () => {
    putSquare(7)
    scheduler.pump(0.5 * SIZE, 0.5 * SIZE) // in the middle of chunk (0, 0)
    const first = drainNear()
    expect(first).toHaveLength(25)
    expect(first).toContain('-2,2')
    expect(scheduler.meshed).toBe(169)
    scheduler.pump(0.7 * SIZE, 0.5 * SIZE)
    expect(workers.jobs).toEqual([])
    scheduler.pump(0.8 * SIZE, 0.5 * SIZE)
    expect(drainNear().sort()).toEqual([-2, -1, 0, 1, 2].map((z) => `3,${z}`).sort())
    scheduler.pump(0.5 * SIZE, 0.5 * SIZE)
    expect(workers.jobs).toEqual([])
  })

  test('a chunk that was meshed from afar while the camera came is meshed again', () => {
    putSquare(7)
    const isFar = (job: Job): job is MeshChunk => job.type === 'mesh' && !job.near
    scheduler.pump(0.5 * SIZE, 0.5 * SIZE)
    for (let near = workers.jobs.find((job) => !isFar(job)); near; near = workers.jobs.find((job) => !isFar(job)))
      workers.finish(near)
    const { x, z } = workers.jobs.find(isFar)!
    scheduler.pump((x + 0.5) * SIZE, (z + 0.5) * SIZE)
    expect(drainNear()).toContain(`${x},${z}`)
  })

  test('a worker holds the neighbours of its chunks', () => {
    for (const workers of [2, 3, 4]) {
      for (let x = -20; x < 20; x++) {
        for (const near of [x - 1, x, x + 1]) expect(holdersOf(near, workers)).toContain(ownerOf(x, workers))
        expect(holdersOf(x, workers)[0]).toBe(ownerOf(x, workers))
      }
    }
  })

  describe('after all is meshed', () => {
    beforeEach(() => {
      putSquare(1)
      vi.advanceTimersByTime(QUIET_MS)
      scheduler.pump(16, 16)
      drain()
    })

    test('an edit is sent with the next frame to the workers that hold its chunk', () => {
      world.set(16, 16, 16, 0)
      scheduler.pump(16, 16)
      expect(workers.jobs).toMatchObject(holdersOf(0, 2).map(() => ({ type: 'edit', edits: [16, 16, 16, 0] })))
      for (const job of workers.jobs) workers.finish(job, [workers.section(0, 0, 0)])
      expect(new Set(shown)).toEqual(new Set(['0,0 0']))
      expect(scheduler.backlog).toBe(0)
    })

    test('while a worker meshes edits, more edits are collected, and then sent together', () => {
      world.set(70, 16, 16, 0) // in a chunk that is not loaded
      world.set(16, 16, 16, 0)
      scheduler.pump(16, 16)
      const [first] = workers.jobs
      world.set(17, 16, 16, GLASS)
      world.set(18, 16, 16, GLASS)
      scheduler.pump(16, 16)
      expect(workers.jobs.filter(({ type }) => type === 'edit')).toHaveLength(holdersOf(0, 2).length)
      expect(scheduler.backlog).toBeGreaterThan(0)
      workers.finish(first!)
      scheduler.pump(16, 16)
      expect(workers.jobs.at(-1)).toMatchObject({ edits: [17, 16, 16, GLASS, 18, 16, 16, GLASS] })
    })

    test('edits that no frame sends are sent in parts', () => {
      for (let i = 0; i < 5000; i++) world.set(i % 32, 16, 16, i % 64 < 32 ? 0 : GLASS)
      expect(workers.jobs.map((job) => job.type === 'edit' && job.edits.length / 4)).toEqual(
        holdersOf(0, 2).map(() => 4096),
      )
      scheduler.pump(16, 16)
      for (const job of workers.jobs) workers.finish(job)
      scheduler.pump(16, 16)
      expect(workers.jobs).toHaveLength(holdersOf(0, 2).length)
      drain()
      expect(scheduler.backlog).toBe(0)
    })

    test('a worker that has failed gets its land again, and meshes its own', () => {
      const worker = ownerOf(0, 2)
      world.set(16, 16, 16, GLASS)
      scheduler.pump(16, 16)
      scheduler.remeshAll()
      scheduler.pump(16, 16)
      world.set(17, 16, 16, GLASS)
      const lost = workers.jobs.length
      workers.posted.splice(0)
      expect(lost).toBeGreaterThan(2)
      workers.restarted(worker)
      const puts = workers.posted.flatMap(({ worker, message }) =>
        message.type === 'put' ? [{ worker, message }] : [],
      )
      expect(puts.map((put) => put.worker)).toEqual(puts.map(() => worker))
      expect(puts.map(({ message: { x, z } }) => `${x},${z}`).sort()).toEqual(
        [-1, 0, 1].flatMap((x) => (holdersOf(x, 2).includes(worker) ? [-1, 0, 1].map((z) => `${x},${z}`) : [])).sort(),
      )
      const { message } = puts.find(({ message: { x, z } }) => x === 0 && z === 0)!
      expect(new Chunk(0, 0, message.sections).get(17, 16, 16)).toBe(GLASS)
      expect(failed).toHaveBeenCalledTimes(1)
      workers.restarted(1 - worker)
      scheduler.pump(16, 16)
      expect(drain()).toHaveLength(9)
      expect([scheduler.backlog, scheduler.meshed]).toEqual([0, 9])
    })

    test('edits are applied before what follows them', () => {
      world.set(16, 16, 16, 0)
      put(0, 0, GLASS)
      const types = workers.posted
        .filter(({ worker }) => worker === ownerOf(0, 2))
        .slice(-2)
        .map(({ message }) => message.type)
      expect(types).toEqual(['edit', 'put'])
    })

    test('a chunk that was unloaded or replaced in the meantime is not shown', () => {
      world.set(16, 16, 16, 0)
      scheduler.pump(16, 16)
      const [job] = workers.jobs
      const section = workers.section(0, 0, 0)
      put(0, 0, GLASS)
      workers.finish(job!, [section])
      expect(shown).toEqual([])
      world.remove(0, 0)
      expect(sink.remove).toHaveBeenCalledWith(0, 0)
      expect(scheduler.meshed).toBe(8)
    })

    test('all can be meshed again', () => {
      scheduler.remeshAll()
      scheduler.pump(16, 16)
      expect(drain()).toHaveLength(9)
    })
  })
})
