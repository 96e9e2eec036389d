// A pool of meshing workers. Each has at most two jobs, so that it is never idle, and edits do not wait behind a long queue.

import type { MeshJob, MeshResult } from './job'

const JOBS_PER_WORKER = 2

export class MeshPool {
  private workers: { worker: Worker; jobs: number }[] = []

  constructor(size: number, done: (result: MeshResult) => void) {
    for (let i = 0; i < size; i++) {
      const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
      const entry = { worker, jobs: 0 }
      worker.onmessage = (event: MessageEvent<MeshResult>) => {
        entry.jobs--
        done(event.data)
      }
      this.workers.push(entry)
    }
  }

  get free(): number {
    return this.workers.reduce((free, { jobs }) => free + JOBS_PER_WORKER - jobs, 0)
  }

  run(job: MeshJob): void {
    const entry = this.workers.reduce((least, other) => (other.jobs < least.jobs ? other : least))
    entry.jobs++
    entry.worker.postMessage(job, [job.volume.blocks.buffer as ArrayBuffer])
  }
}

export function poolSize(): number {
  return Math.max(1, Math.min(4, (navigator.hardwareConcurrency || 2) - 1))
}
