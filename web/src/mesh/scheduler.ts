// Decides what to mesh next: first the sections touched by an edit, then those that the edit's change of light reaches and
// newly loaded chunks, nearest first. A chunk waits for its eight neighbours, so that its border is correct the first time;
// once no more chunks arrive, it is meshed without them.

import { SIZE, chunkKey, chunkOf } from '../world/coords'
import { kindOf } from '../world/blocks'
import type { Chunk, World, WorldListener } from '../world/world'
import type { MeshJob, MeshResult } from './job'
import type { SectionMesh } from './mesher'
import { MeshPool, poolSize } from './pool'
import { copyVolume } from './volume'

const QUIET_MS = 500 // after the last chunk arrived, chunks at the edge are meshed without all neighbours
const LIGHT_REACH = 15

interface Dirty {
  x: number
  z: number
  sections: number // bit s for section s
}

interface Job {
  x: number
  z: number
  chunk: Chunk
  sections: number[]
}

export interface MeshSink {
  show(x: number, z: number, section: number, mesh: SectionMesh): void
  remove(x: number, z: number): void
}

/** Runs jobs in workers; MeshPool implements it. */
export interface WorkerPool {
  /** The number of free job slots. Urgent jobs may exceed it. */
  readonly free: number
  run(job: MeshJob): void
}

export class MeshScheduler implements WorldListener {
  private dirty = new Map<number, Dirty>()
  private urgent = new Map<number, Dirty>()
  private jobs = new Map<number, Job>()
  private shown = new Map<number, Int32Array>() // for each chunk: the job whose mesh each section shows
  private lastArrival = 0
  private cameraX = 0 // in chunks, from the centre of chunk 0
  private cameraZ = 0
  private nextJob = 1
  private readonly pool: WorkerPool
  /** The mean duration of a job in its worker, in ms. */
  meanDuration = 0
  /** The number of chunks that have been meshed at least once. */
  get meshed(): number {
    return this.shown.size
  }
  /** The number of chunks that wait for a mesh or are being meshed. */
  get backlog(): number {
    return this.dirty.size + this.urgent.size + this.jobs.size
  }

  constructor(
    private readonly world: World,
    private readonly sink: MeshSink,
    makePool: (done: (result: MeshResult) => void) => WorkerPool = (done) => new MeshPool(poolSize(), done),
  ) {
    this.pool = makePool((result) => this.done(result))
    world.listen(this)
  }

  chunkChanged(chunk: Chunk): void {
    this.lastArrival = performance.now()
    for (let dz = -1; dz <= 1; dz++) {
      for (let dx = -1; dx <= 1; dx++) {
        const near = this.world.chunk(chunk.x + dx, chunk.z + dz)
        if (near) addSections(this.dirty, near.x, near.z, allSections(near))
      }
    }
  }

  chunkRemoved(chunk: Chunk): void {
    const key = chunkKey(chunk.x, chunk.z)
    this.dirty.delete(key)
    this.urgent.delete(key)
    this.shown.delete(key)
    this.sink.remove(chunk.x, chunk.z)
  }

  blockChanged(x: number, y: number, z: number, before: number, after: number): void {
    // the block's section, and those that share a corner with the block
    this.addBox(this.urgent, x - 1, y - 1, z - 1, x + 1, y + 1, z + 1)
    const old = kindOf(before)
    const now = kindOf(after)
    if (old.opaque !== now.opaque || old.glow !== now.glow || old.dims !== now.dims) {
      // sky light may reach the floor
      this.addBox(this.dirty, x - LIGHT_REACH, 0, z - LIGHT_REACH, x + LIGHT_REACH, y + LIGHT_REACH, z + LIGHT_REACH)
    }
  }

  private addBox(
    queue: Map<number, Dirty>,
    x0: number,
    y0: number,
    z0: number,
    x1: number,
    y1: number,
    z1: number,
  ): void {
    const low = Math.max(0, y0 >> 5)
    const high = Math.min(this.world.height / SIZE - 1, y1 >> 5)
    let sections = 0
    for (let s = low; s <= high; s++) sections |= 1 << s
    for (let cz = chunkOf(z0); cz <= chunkOf(z1); cz++) {
      for (let cx = chunkOf(x0); cx <= chunkOf(x1); cx++) {
        if (this.world.chunk(cx, cz)) addSections(queue, cx, cz, sections)
      }
    }
  }

  /** Assigns jobs to free workers; called once per frame. (x, z) is the camera's position in blocks. */
  pump(x: number, z: number): void {
    this.cameraX = x / SIZE - 0.5
    this.cameraZ = z / SIZE - 0.5
    for (const [key, dirty] of this.urgent) {
      this.urgent.delete(key)
      this.start(dirty)
    }
    while (this.pool.free > 0 && this.startNearest());
  }

  private startNearest(): boolean {
    if (this.dirty.size === 0) return false
    const next = this.nearest(performance.now() - this.lastArrival > QUIET_MS)
    if (!next) return false
    this.dirty.delete(chunkKey(next.x, next.z))
    this.start(next)
    return true
  }

  private nearest(quiet: boolean): Dirty | null {
    let best: Dirty | null = null
    let least = Infinity
    for (const dirty of this.dirty.values()) {
      const distance = (dirty.x - this.cameraX) ** 2 + (dirty.z - this.cameraZ) ** 2
      if (distance >= least || !(quiet || this.surrounded(dirty))) continue
      least = distance
      best = dirty
    }
    return best
  }

  private surrounded({ x, z }: Dirty): boolean {
    for (let dz = -1; dz <= 1; dz++) {
      for (let dx = -1; dx <= 1; dx++) if (!this.world.chunk(x + dx, z + dz)) return false
    }
    return true
  }

  private start(dirty: Dirty): void {
    const chunk = this.world.chunk(dirty.x, dirty.z)
    if (!chunk) return
    const sections = []
    for (let s = 0; s < chunk.sections.length; s++) if (dirty.sections & (1 << s)) sections.push(s)
    const id = this.nextJob++
    this.jobs.set(id, { x: dirty.x, z: dirty.z, chunk, sections })
    this.pool.run({ id, volume: copyVolume(this.world, dirty.x, dirty.z), sections })
  }

  private done(result: MeshResult): void {
    const job = this.jobs.get(result.id)
    if (!job) return
    this.jobs.delete(result.id)
    this.startNearest()
    this.meanDuration = this.meanDuration === 0 ? result.duration : this.meanDuration * 0.9 + result.duration * 0.1
    if (!this.world.chunk(job.x, job.z)) return // unloaded in the meantime
    const key = chunkKey(job.x, job.z)
    let shown = this.shown.get(key)
    if (!shown) this.shown.set(key, (shown = new Int32Array(job.chunk.sections.length)))
    job.sections.forEach((s, i) => {
      const mesh = result.meshes[i]
      if (!mesh || (shown[s] ?? 0) > result.id) return // a later job finished first
      shown[s] = result.id
      this.sink.show(job.x, job.z, s, mesh)
    })
  }
}

function addSections(queue: Map<number, Dirty>, x: number, z: number, sections: number): void {
  const key = chunkKey(x, z)
  const dirty = queue.get(key)
  if (dirty) dirty.sections |= sections
  else queue.set(key, { x, z, sections })
}

function allSections(chunk: Chunk): number {
  return chunk.sections.length >= 32 ? -1 : (1 << chunk.sections.length) - 1
}
