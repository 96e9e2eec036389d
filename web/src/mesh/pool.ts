// The meshing workers. Each holds a share of the chunks: stripes of STRIPE chunks along z, in turn, so that each worker has work
// near the camera. It also holds the neighbours of its chunks, because light and occlusion cross borders.

import type { Meshed, ToWorker } from './messages'

const STRIPE = 4
const RESTART_MS = 5000 // after a worker's script could not be loaded

export class MeshPool {
  private readonly workers: Worker[] = []

  constructor(
    readonly size: number,
    private readonly done: (answer: Meshed) => void,
    /** Called when a worker that failed was replaced by one that holds nothing. */
    private readonly restarted: (worker: number) => void,
  ) {
    for (let i = 0; i < size; i++) this.start(i)
  }

  private start(i: number): void {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
    worker.onmessage = (event: MessageEvent<Meshed>) => this.done(event.data)
    worker.onerror = () => {
      worker.onerror = null
      worker.terminate()
      window.setTimeout(() => {
        this.start(i)
        this.restarted(i)
      }, RESTART_MS)
    }
    this.workers[i] = worker
  }

  post(worker: number, message: ToWorker): void {
    this.workers[worker]?.postMessage(message)
  }
}

/** Returns the number of workers: two to four, and the main thread keeps a core if there are more than two. */
export function poolSize(): number {
  return Math.max(2, Math.min(4, (navigator.hardwareConcurrency || 2) - 1))
}

/** Returns the worker that meshes the chunks at x. */
export function ownerOf(x: number, workers: number): number {
  const stripe = Math.floor(x / STRIPE)
  return stripe - workers * Math.floor(stripe / workers)
}

/** Returns the workers that hold the chunks at x, the owner first. */
export function holdersOf(x: number, workers: number): number[] {
  return [...new Set([x, x - 1, x + 1].map((near) => ownerOf(near, workers)))]
}
