// Interpolates an avatar between received poses. The avatar is shown slightly in the past, so that it moves smoothly
// although updates arrive in discrete steps and bursts. Times are in ms, on any one clock.

import type { Pose } from './pose'

const MIN_DELAY = 110
const MAX_DELAY = 600 // distant avatars are updated at an eighth of the rate
const TELEPORT = 12 // in blocks: a longer distance between two poses is not interpolated
const MAX_SAMPLES = 12
const AT_ONCE = 10 // poses that come so soon after each other are one sample: after a lost packet a dozen may

interface Sample extends Pose {
  at: number
}

export class InterpolationBuffer {
  private samples: Sample[] // oldest first, newest included
  private latest: Sample
  private interval = 50

  constructor(pose: Pose, now: number) {
    this.latest = { ...pose, at: now }
    this.samples = [this.latest]
  }

  add(pose: Pose, now: number): void {
    const last = this.latest
    this.latest = { ...pose, at: Math.max(now, last.at) }
    if (distance(last, pose) > TELEPORT) {
      this.samples = [this.latest]
      return
    }
    const gap = now - last.at
    if (gap < AT_ONCE) {
      this.latest.at = last.at
      this.samples[this.samples.length - 1] = this.latest
      return
    }
    if (gap > 2 * MAX_DELAY) {
      // the avatar stood still until now: do not stretch the first step over the pause
      this.samples.push({ ...last, at: now - this.interval })
    } else {
      this.interval += (Math.min(gap, MAX_DELAY) - this.interval) * 0.15
    }
    this.samples.push(this.latest)
    if (this.samples.length > MAX_SAMPLES) this.samples.splice(0, this.samples.length - MAX_SAMPLES)
  }

  /** The delay with which the avatar is shown, in ms. */
  get delay(): number {
    return Math.min(MAX_DELAY, Math.max(MIN_DELAY, this.interval * 1.6))
  }

  /** Returns the pose to show now. */
  at(now: number): Pose {
    const time = now - this.delay
    const next = this.samples.findIndex(({ at }) => at > time)
    const to = this.samples[next]
    if (!to) return this.latest
    const from = this.samples[next - 1]
    if (!from) return to // not old enough yet
    const t = (time - from.at) / (to.at - from.at)
    return {
      x: from.x + (to.x - from.x) * t,
      y: from.y + (to.y - from.y) * t,
      z: from.z + (to.z - from.z) * t,
      yaw: from.yaw + angleDelta(from.yaw, to.yaw) * t,
      pitch: from.pitch + (to.pitch - from.pitch) * t,
    }
  }

  /** The latest received pose. */
  get newest(): Pose {
    return this.latest
  }
}

/** Returns the shorter rotation from one angle to another, in (−π, π]. */
export function angleDelta(from: number, to: number): number {
  const full = 2 * Math.PI
  const delta = (((to - from) % full) + full) % full
  return delta > Math.PI ? delta - full : delta
}

function distance(a: Pose, b: Pose): number {
  return Math.hypot(a.x - b.x, a.y - b.y, a.z - b.z)
}
