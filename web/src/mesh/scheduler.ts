// Keeps the workers' land up to date, and decides what to mesh next: newly loaded chunks, nearest first. A chunk waits for its
// eight neighbours, so that its border is correct the first time; once no more chunks arrive, it is meshed without them.
// Edits are sent to the workers at once; they find what to mesh again.

import { SIZE, chunkKey, chunkOf } from '../world/coords'
import type { Chunk, World, WorldListener } from '../world/world'
import type { SectionMesh } from './mesher'
import type { Meshed, ToWorker } from './messages'
import { MeshPool, holdersOf, ownerOf, poolSize } from './pool'

const QUIET_MS = 500 // after the last chunk arrived, chunks at the edge are meshed without all neighbours
/** Chunks up to here from the camera are meshed for being seen nearby: before thickets are drawn, and plants are (terrain-material.ts). */
const NEAR_CHUNKS = 2.75
const APPROACH_STEP = 0.25 // chunks that the camera moves until it is looked again which are near
const JOBS_PER_WORKER = 2 // so that none is idle, and edits do not wait behind a long queue
const MAX_EDITS = 4096 // not sent yet, for a worker: a hidden page draws no frames, which send them

export interface MeshSink {
  show(x: number, z: number, section: number, mesh: SectionMesh): void
  remove(x: number, z: number): void
}

/** The workers; MeshPool implements it. */
export interface WorkerPool {
  readonly size: number
  post(worker: number, message: ToWorker): void
}

/** restarted is called with a worker that has lost all its land and jobs. */
type MakePool = (done: (answer: Meshed) => void, restarted: (worker: number) => void) => WorkerPool

interface Loaded {
  chunk: Chunk
  version: number
  /** Its meshes were shown. */
  meshed: boolean
  /** It was meshed for being seen nearby, or is about to be. */
  near: boolean
}

interface Job {
  worker: number
  /** The number of edits; 0 for a loaded chunk. */
  edits: number
}

interface Share {
  jobs: number
  edits: number[] // not sent yet, see EditBlocks
  editing: boolean // edits are being meshed: more are sent together, when that is done
}

/** Totals since the start, for measurements. */
export interface MeshStats {
  /** Edits, and the sections that were meshed again because of them. */
  edits: number
  remeshed: number
  /** The time spent on edits in the workers, in ms. */
  editing: number
  /** Sections meshed after loading, and the time spent on them, light included. */
  sections: number
  loading: number
}

export class MeshScheduler implements WorldListener {
  private readonly loaded = new Map<number, Loaded>()
  private readonly dirty = new Map<number, Loaded>() // chunks to be meshed
  private readonly jobs = new Map<number, Job>()
  private readonly shares: Share[] = []
  private lastArrival = 0
  private cameraX = 0 // in chunks, from the centre of chunk 0
  private cameraZ = 0
  private approached: readonly [x: number, z: number] = [0, 0] // the camera, when it was last looked which chunks are near
  private nextJob = 1
  private nextVersion = 1
  private readonly pool: WorkerPool
  readonly stats: MeshStats = { edits: 0, remeshed: 0, editing: 0, sections: 0, loading: 0 }
  /** The mean duration of a job in its worker, in ms. */
  meanDuration = 0
  /** The number of chunks that have been meshed at least once. */
  meshed = 0

  /** The number of chunks that wait for a mesh, and of jobs and edits that are not done. */
  get backlog(): number {
    return this.shares.reduce((sum, { edits }) => sum + edits.length / 4, this.dirty.size + this.jobs.size)
  }

  constructor(
    private readonly world: World,
    private readonly sink: MeshSink,
    /** Called when a worker failed: its land is meshed again. */
    private readonly failed: () => void,
    makePool: MakePool = (done, restarted) => new MeshPool(poolSize(), done, restarted),
  ) {
    this.pool = makePool(
      (answer) => this.done(answer),
      (worker) => this.restarted(worker),
    )
    for (let i = 0; i < this.pool.size; i++) this.shares.push({ jobs: 0, edits: [], editing: false })
    world.listen(this)
  }

  chunkChanged(chunk: Chunk): void {
    const { x, z } = chunk
    this.lastArrival = performance.now()
    const { meshed = false, near = false } = this.loaded.get(chunkKey(x, z)) ?? {}
    const loaded = { chunk, version: this.nextVersion++, meshed, near }
    this.loaded.set(chunkKey(x, z), loaded)
    for (const worker of holdersOf(x, this.pool.size)) {
      this.sendEdits(worker)
      this.put(worker, loaded)
    }
    for (let dz = -1; dz <= 1; dz++) {
      for (let dx = -1; dx <= 1; dx++) this.markDirty(x + dx, z + dz)
    }
  }

  chunkRemoved({ x, z }: Chunk): void {
    const key = chunkKey(x, z)
    if (this.loaded.get(key)?.meshed) this.meshed--
    this.loaded.delete(key)
    this.dirty.delete(key)
    for (const worker of holdersOf(x, this.pool.size)) {
      this.sendEdits(worker)
      this.pool.post(worker, { type: 'remove', x, z })
    }
    this.sink.remove(x, z)
  }

  blockChanged(x: number, y: number, z: number, _before: number, after: number): void {
    this.stats.edits++
    for (const worker of holdersOf(chunkOf(x), this.pool.size)) {
      const edits = this.shares[worker]?.edits
      if (edits && edits.push(x, y, z, after) >= 4 * MAX_EDITS) this.sendEdits(worker)
    }
  }

  private put(worker: number, { chunk: { x, z, sections }, version }: Loaded): void {
    this.pool.post(worker, { type: 'put', x, z, version, own: worker === ownerOf(x, this.pool.size), sections })
  }

  /** Gives a new worker the chunks of one that has failed, whose jobs will not be done. */
  private restarted(worker: number): void {
    this.failed()
    for (const [id, job] of this.jobs) if (job.worker === worker) this.jobs.delete(id)
    this.shares[worker] = { jobs: 0, edits: [], editing: false }
    for (const [key, loaded] of this.loaded) {
      const holders = holdersOf(loaded.chunk.x, this.pool.size)
      if (holders.includes(worker)) this.put(worker, loaded)
      if (holders[0] === worker) this.dirty.set(key, loaded)
    }
  }

  /** Meshes all chunks again. */
  remeshAll(): void {
    for (const [key, loaded] of this.loaded) this.dirty.set(key, loaded)
  }

  private markDirty(x: number, z: number): void {
    const key = chunkKey(x, z)
    const loaded = this.loaded.get(key)
    if (loaded) this.dirty.set(key, loaded)
  }

  /** Assigns jobs to free workers; called once per frame. (x, z) is the camera's position in blocks. */
  pump(x: number, z: number): void {
    this.cameraX = x / SIZE - 0.5
    this.cameraZ = z / SIZE - 0.5
    const [fromX, fromZ] = this.approached
    if (Math.max(Math.abs(this.cameraX - fromX), Math.abs(this.cameraZ - fromZ)) >= APPROACH_STEP) this.approach()
    this.shares.forEach(({ editing }, worker) => {
      if (!editing) this.sendEdits(worker)
    })
    this.startNearest()
  }

  /** Meshes chunks again that are near by now. */
  private approach(): void {
    this.approached = [this.cameraX, this.cameraZ]
    for (const [key, loaded] of this.loaded)
      if (loaded.meshed && !loaded.near && this.isNear(loaded)) this.dirty.set(key, loaded)
  }

  private isNear({ chunk }: Loaded): boolean {
    return Math.max(Math.abs(chunk.x - this.cameraX), Math.abs(chunk.z - this.cameraZ)) < NEAR_CHUNKS
  }

  private sendEdits(worker: number): void {
    const share = this.shares[worker]
    if (!share || share.edits.length === 0) return
    const edits = share.edits.splice(0)
    share.editing = true
    const job = this.start({ worker, edits: edits.length / 4 })
    this.pool.post(worker, { type: 'edit', job, edits })
  }

  private start(job: Job): number {
    const id = this.nextJob++
    this.jobs.set(id, job)
    return id
  }

  private startNearest(): void {
    if (this.dirty.size === 0) return
    const quiet = performance.now() - this.lastArrival > QUIET_MS
    this.shares.forEach((share, worker) => {
      while (share.jobs < JOBS_PER_WORKER) {
        const next = this.nearest(worker, quiet)
        if (!next) break
        const { x, z, sections } = next.chunk
        this.dirty.delete(chunkKey(x, z))
        share.jobs++
        next.near ||= this.isNear(next)
        const job = this.start({ worker, edits: 0 })
        this.sendEdits(worker)
        this.pool.post(worker, { type: 'mesh', job, x, z, sections: 2 ** sections.length - 1, near: next.near })
      }
    })
  }

  private nearest(worker: number, quiet: boolean): Loaded | null {
    let best: Loaded | null = null
    let least = Infinity
    for (const loaded of this.dirty.values()) {
      const { x, z } = loaded.chunk
      if (ownerOf(x, this.pool.size) !== worker) continue
      const distance = (x - this.cameraX) ** 2 + (z - this.cameraZ) ** 2
      if (distance >= least || !(quiet || this.surrounded(x, z))) continue
      least = distance
      best = loaded
    }
    return best
  }

  private surrounded(x: number, z: number): boolean {
    for (let dz = -1; dz <= 1; dz++) {
      for (let dx = -1; dx <= 1; dx++) if (!this.world.chunk(x + dx, z + dz)) return false
    }
    return true
  }

  private done({ job: id, sections, duration }: Meshed): void {
    const job = this.jobs.get(id)
    const share = job && this.shares[job.worker]
    if (!share) return
    this.jobs.delete(id)
    if (job.edits > 0) {
      share.editing = false
      this.stats.editing += duration
      this.stats.remeshed += sections.length
    } else {
      share.jobs--
      this.stats.loading += duration
      this.stats.sections += sections.length
      this.startNearest()
    }
    this.meanDuration = this.meanDuration === 0 ? duration : this.meanDuration * 0.9 + duration * 0.1
    for (const { x, z, version, section, mesh } of sections) {
      const loaded = this.loaded.get(chunkKey(x, z))
      if (loaded?.version !== version) continue // unloaded or replaced in the meantime
      if (!loaded.meshed) {
        loaded.meshed = true
        this.meshed++
        if (!loaded.near && this.isNear(loaded)) this.dirty.set(chunkKey(x, z), loaded) // the player came meanwhile
      }
      this.sink.show(x, z, section, mesh)
    }
  }
}
