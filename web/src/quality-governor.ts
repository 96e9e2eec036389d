// Asks less of a machine that draws too slowly, step by step, and more again when it has been fast for long. A step takes
// resolution and land at once: what is slow, pixels or vertices, cannot be told from here. The player's settings are
// its upper bounds.

import { RANGES, type Settings } from './settings'

const WINDOW_MS = 3000
const FEW_FRAMES = 4
const SLOW = 20 // frames/s
const FAST = 50 // or nearly as fast as ever, on a screen that shows fewer
const NEARLY = 0.9
const PATIENT = 5 // fast windows before more is asked for, at first
const MOST_PATIENT = 160
const RELAPSE_MS = 60_000
const GAP_MS = 10_000 // nothing drawn for so long: the machine slept; of a hidden page restart is told

/** Of each step: the factor on the resolution, and the chunks of view that are left out. */
const STEPS = [
  [1, 0],
  [0.8, 1],
  [0.65, 2],
  [0.5, 3],
  [0.4, 4],
]

export class QualityGovernor {
  /** The step, 0 for all that the player wants. */
  step = 0
  private began = 0
  private last = -Infinity
  private frames = 0
  private fastWindows = 0
  private patience = PATIENT
  private raised = -Infinity
  private best = 0 // frames/s of the fastest window

  /** Counts a frame; now in ms. True if the step has changed. */
  frame(now: number): boolean {
    if (now - this.last > GAP_MS) this.restart(now)
    this.last = now
    this.frames++
    const took = now - this.began
    if (took < WINDOW_MS || this.frames < FEW_FRAMES) return false
    const rate = (this.frames * 1000) / took
    this.restart(now)
    if (rate < SLOW) return this.lower(now)
    this.best = Math.max(this.best, rate)
    this.fastWindows = rate > Math.min(FAST, NEARLY * this.best) ? this.fastWindows + 1 : 0
    if (this.step === 0 || this.fastWindows < this.patience) return false
    this.fastWindows = 0
    this.raised = now
    this.step--
    return true
  }

  /** Begins to measure anew: what was seen so far says nothing. */
  restart(now: number): void {
    this.began = this.last = now
    this.frames = 0
  }

  private lower(now: number): boolean {
    this.fastWindows = 0
    if (this.step === STEPS.length - 1) return false
    if (now - this.raised < RELAPSE_MS) this.patience = Math.min(MOST_PATIENT, 2 * this.patience)
    this.step++
    return true
  }
}

/** What is drawn at a step of the pace. */
export function effectiveQuality({ view, renderScale, adaptive }: Settings, step: number): Pick<Settings, 'view' | 'renderScale'> {
  if (!adaptive) return { view, renderScale }
  const [factor, fewer] = STEPS[step]
  return { view: Math.max(RANGES.view[0], view - fewer), renderScale: Math.max(RANGES.renderScale[0], renderScale * factor) }
}
