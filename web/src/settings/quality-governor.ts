// Lowers the quality in steps while frames are slow, and raises it again after they have been fast for a while. Each step
// lowers both resolution and view distance, because the frame rate does not show which of them is the bottleneck. The
// player's settings are the upper bounds.

import { RANGES, type Settings } from './settings'

const WINDOW_MS = 3000
const MIN_FRAMES = 4
const SLOW = 20 // frames/s
const FAST = 50 // frames/s; on slower screens, NEAR_BEST of the best rate seen counts as fast
const NEAR_BEST = 0.9
const PATIENCE = 5 // fast windows before the quality is raised, at first
const MAX_PATIENCE = 160
const RELAPSE_MS = 60_000
const GAP_MS = 10_000 // without a frame for this long, the machine slept; for hidden pages, the game calls restart

/** For each step: the factor on the resolution, and the reduction of the view distance in chunks. */
const STEPS: [resolution: number, chunks: number][] = [
  [1, 0],
  [0.8, 1],
  [0.65, 2],
  [0.5, 3],
  [0.4, 4],
]

export class QualityGovernor {
  /** The current step; 0 is full quality. */
  step = 0
  private windowStart = 0
  private lastFrame = -Infinity
  private frames = 0
  private fastWindows = 0
  private patience = PATIENCE
  private raisedAt = -Infinity
  private bestRate = 0 // frames/s of the fastest window

  /** Counts a frame at now, in ms. Reports whether the step changed. */
  countFrame(now: number): boolean {
    if (now - this.lastFrame > GAP_MS) this.restart(now)
    this.lastFrame = now
    this.frames++
    const duration = now - this.windowStart
    if (duration < WINDOW_MS || this.frames < MIN_FRAMES) return false
    const rate = (this.frames * 1000) / duration
    this.restart(now)
    if (rate < SLOW) return this.lower(now)
    this.bestRate = Math.max(this.bestRate, rate)
    this.fastWindows = rate > Math.min(FAST, NEAR_BEST * this.bestRate) ? this.fastWindows + 1 : 0
    if (this.step === 0 || this.fastWindows < this.patience) return false
    this.fastWindows = 0
    this.raisedAt = now
    this.step--
    return true
  }

  /** Restarts the measurement and discards the current window. */
  restart(now: number): void {
    this.windowStart = this.lastFrame = now
    this.frames = 0
  }

  private lower(now: number): boolean {
    this.fastWindows = 0
    if (this.step === STEPS.length - 1) return false
    if (now - this.raisedAt < RELAPSE_MS) this.patience = Math.min(MAX_PATIENCE, 2 * this.patience)
    this.step++
    return true
  }
}

/** Returns the view distance and resolution in effect at a step. */
export function effectiveQuality(
  { view, renderScale, adaptive }: Settings,
  step: number,
): Pick<Settings, 'view' | 'renderScale'> {
  if (!adaptive) return { view, renderScale }
  const [factor, fewerChunks] = STEPS[step] ?? [1, 0]
  return {
    view: Math.max(RANGES.view[0], view - fewerChunks),
    renderScale: Math.max(RANGES.renderScale[0], renderScale * factor),
  }
}
