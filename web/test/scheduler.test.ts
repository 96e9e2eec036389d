import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { MeshJob, MeshResult } from '../src/mesh/job'
import type { SectionMesh } from '../src/mesh/mesher'
import { MeshScheduler } from '../src/mesh/scheduler'
import { MARGIN, WIDTH, type Volume } from '../src/mesh/volume'
import type { Section } from '../src/world/codec'
import { SIZE } from '../src/world/coords'
import { Chunk, World } from '../src/world/world'

const STONE = 1
const GLASS = 18
const SECTIONS = 3
const QUIET_MS = 501

/** Workers that finish a job when the test says so. */
class Workers {
  readonly jobs: MeshJob[] = []
  free = 1
  constructor(private readonly done: (result: MeshResult) => void) {}
  run(job: MeshJob) {
    this.free--
    this.jobs.push(job)
  }
  /** Finishes the oldest job, or the one at an index, with a mesh that names it. */
  finish(index = 0) {
    const [job] = this.jobs.splice(index, 1)
    if (!job) throw new Error('no job')
    this.free++
    this.done({ id: job.id, duration: 1, meshes: job.sections.map(() => meshOf(job)) })
  }
}

function meshOf({ id }: MeshJob): SectionMesh {
  const none = new Uint32Array(0)
  return { opaque: Uint32Array.of(id), cutout: none, water: none, thicket: none }
}

/** Returns the block in the middle of a volume's lowest layer, which names the chunk in these tests. */
function nameOf({ blocks }: Volume): number {
  return blocks[(MARGIN + 16) * WIDTH + MARGIN + 16] ?? 0
}

describe('mesh scheduler', () => {
  let world: World
  let workers: Workers
  let scheduler: MeshScheduler
  let shown: { x: number; z: number; section: number; job: number | undefined }[]
  const sink = {
    show: (x: number, z: number, section: number, mesh: SectionMesh) => {
      shown.push({ x, z, section, job: mesh.opaque[0] })
    },
    remove: vi.fn(),
  }

  beforeEach(() => {
    vi.useFakeTimers()
    shown = []
    world = new World()
    world.height = SECTIONS * SIZE
    scheduler = new MeshScheduler(world, sink, (done) => (workers = new Workers(done)))
  })
  afterEach(() => void vi.useRealTimers())

  /** Adds a chunk whose lowest section consists of one block. */
  function put(x: number, z: number, block = STONE) {
    world.put(new Chunk(x, z, [block, ...Array<Section>(SECTIONS - 1).fill(0)]))
  }

  function putSquare(radius: number) {
    for (let z = -radius; z <= radius; z++) for (let x = -radius; x <= radius; x++) put(x, z)
  }

  /** Finishes all jobs; returns the chunks in the order in which they were shown. */
  function drain(): string[] {
    while (workers.jobs.length > 0) workers.finish()
    return [...new Set(shown.splice(0).map(({ x, z }) => `${x},${z}`))]
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

  test('the nearest to the camera comes first', () => {
    putSquare(2)
    scheduler.pump(1.5 * SIZE, 0.5 * SIZE) // in chunk (1, 0)
    const order = drain()
    expect(order).toHaveLength(9)
    const away = order.map((chunk) => {
      const [x, z] = chunk.split(',').map(Number) as [number, number]
      return (x - 1) ** 2 + z ** 2
    })
    expect(away).toEqual([...away].sort((a, b) => a - b))
    expect(order[0]).toBe('1,0')
  })

  test('uses no more workers than are free', () => {
    putSquare(2)
    workers.free = 2
    scheduler.pump(16, 16)
    expect(workers.jobs).toHaveLength(2)
    workers.finish() // starts the next one
    expect(workers.jobs).toHaveLength(2)
  })

  describe('after all is meshed', () => {
    beforeEach(() => {
      putSquare(1)
      vi.advanceTimersByTime(QUIET_MS)
      scheduler.pump(16, 16)
      drain()
    })

    test('an edit starts at once, whether or not a worker is free', () => {
      workers.free = 0
      world.set(16, 16, 16, 0)
      scheduler.pump(16, 16)
      expect(workers.jobs).toMatchObject([{ sections: [0] }])
    })

    test('an edit in a corner meshes all sections that share it', () => {
      world.set(0, SIZE, 0, GLASS)
      workers.free = 0
      scheduler.pump(16, 16)
      expect(workers.jobs.map(({ sections }) => sections)).toEqual(Array(4).fill([0, 1]))
    })

    test('what blocks light is meshed again as far as its light reaches; what does not is not', () => {
      world.set(16, 40, 16, GLASS)
      scheduler.pump(16, 16)
      expect(drain()).toEqual(['0,0'])
      expect(scheduler.backlog).toBe(0)
      world.set(16, 40, 16, STONE)
      scheduler.pump(16, 16)
      expect(drain()).toEqual(['0,0']) // fifteen blocks to each side are in the chunk
      world.set(17, 40, 16, STONE)
      scheduler.pump(16, 16)
      expect(new Set(drain())).toEqual(new Set(['0,0', '1,0']))
    })

    test('the mesh of a later job stays when an earlier one finishes after it', () => {
      world.set(16, 16, 16, 0)
      scheduler.pump(16, 16)
      world.set(16, 16, 16, STONE)
      scheduler.pump(16, 16)
      const [first, second] = workers.jobs
      expect(first?.id).toBeLessThan(second?.id ?? 0)
      workers.finish(1)
      const later = shown.filter(({ section }) => section === 0)
      expect(later).toEqual([{ x: 0, z: 0, section: 0, job: second?.id }])
      workers.finish(0)
      expect(shown.filter(({ job }) => job === first?.id)).toEqual([])
    })

    test('a chunk that was unloaded in the meantime is not shown', () => {
      world.set(16, 16, 16, 0)
      scheduler.pump(16, 16)
      world.remove(0, 0)
      expect(sink.remove).toHaveBeenCalledWith(0, 0)
      drain()
      expect(shown).toEqual([])
      expect(scheduler.meshed).toBe(8)
    })

    test('a job has the blocks of the moment when it starts', () => {
      put(0, 0, GLASS)
      scheduler.pump(16, 16)
      expect(workers.jobs.map(({ volume }) => nameOf(volume))).toContain(GLASS)
    })
  })
})
