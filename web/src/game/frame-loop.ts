// The frame loop: updates the systems in order, once per frame of the browser.

export interface Frame {
  /** As in performance.now, in ms. */
  now: number
  /** Since the last frame, in seconds, at most MAX_DT. */
  dt: number
}

export interface System {
  update(frame: Frame): void
}

const MAX_DT = 0.25

export class FrameLoop {
  private last = 0

  constructor(private readonly systems: readonly System[]) {}

  start(): void {
    requestAnimationFrame((now) => {
      this.start()
      this.run(now)
    })
  }

  private run(now: number): void {
    const dt = Math.min(MAX_DT, Math.max(0, (now - this.last) / 1000))
    this.last = now
    for (const system of this.systems) system.update({ now, dt })
  }
}

export class FrameCounter implements System {
  frames = 0
  /** Frames per second, smoothed. */
  rate = 0

  update({ dt }: Frame): void {
    this.frames++
    if (dt > 0) this.rate += (1 / dt - this.rate) * 0.06
  }
}
