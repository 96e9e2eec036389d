// An avatar's way as it is shown: a little in the past, between the poses that have arrived, so that it moves smoothly
// though news comes in steps and clumps. Times are ms on any one clock.

import type { Pose } from '../net/protocol'

const MIN_DELAY = 110
const MAX_DELAY = 600 // far avatars are updated at an eighth of the rate
const LEAP = 12 // a longer way between two poses is a jump, not a walk, in blocks
const KEEP = 12

interface Sample extends Pose {
  at: number
}

export class InterpolationBuffer {
  private samples: Sample[] = []
  private interval = 50

  constructor(pose: Pose, now: number) {
    this.samples.push({ ...pose, at: now })
  }

  add(pose: Pose, now: number): void {
    const last = this.samples[this.samples.length - 1]
    if (distance(last, pose) > LEAP) {
      this.samples = [{ ...pose, at: now }]
      return
    }
    const gap = now - last.at
    if (gap > 2 * MAX_DELAY) {
      // stood still until now: do not stretch the first step over the pause
      this.samples.push({ ...last, at: now - this.interval })
    } else {
      this.interval += (Math.min(gap, MAX_DELAY) - this.interval) * 0.15
    }
    this.samples.push({ ...pose, at: Math.max(now, last.at) })
    if (this.samples.length > KEEP) this.samples.splice(0, this.samples.length - KEEP)
  }

  /** How far in the past the avatar is shown. */
  get delay(): number {
    return Math.min(MAX_DELAY, Math.max(MIN_DELAY, this.interval * 1.6))
  }

  /** Where the avatar is shown now. */
  at(now: number): Pose {
    const time = now - this.delay
    const { samples } = this
    let i = samples.length - 1
    while (i > 0 && samples[i].at > time) i--
    const from = samples[i]
    const to = samples[i + 1]
    if (!to || time <= from.at) return from
    const t = (time - from.at) / (to.at - from.at)
    return {
      x: from.x + (to.x - from.x) * t,
      y: from.y + (to.y - from.y) * t,
      z: from.z + (to.z - from.z) * t,
      yaw: from.yaw + turn(from.yaw, to.yaw) * t,
      pitch: from.pitch + (to.pitch - from.pitch) * t,
    }
  }

  /** The newest pose that has arrived. */
  get newest(): Pose {
    return this.samples[this.samples.length - 1]
  }
}

/** The shorter way from one angle to another, in (−π, π]. */
export function turn(from: number, to: number): number {
  const full = 2 * Math.PI
  const way = (((to - from) % full) + full) % full
  return way > Math.PI ? way - full : way
}

function distance(a: Pose, b: Pose): number {
  return Math.hypot(a.x - b.x, a.y - b.y, a.z - b.z)
}
