// The player's body: a box of 0.6 × 1.8 × 0.6 blocks that walks, jumps, swims or flies, and slides along obstacles. World
// and time are arguments. Units are blocks and seconds; the position is the middle of the feet.

import { WATER, boxesOf, isClimbable, isSolid, type Box } from '../world/blocks'
import { VOID } from '../world/world'

export const HALF_WIDTH = 0.3
export const HEIGHT = 1.8
export const EYE = 1.62

const WALK = 4.5
const SPRINT = 6.6
const SNEAK = 1.6
const FLY = 10
const FLY_FAST = 17 // the server allows 20 horizontally and 20 upwards
const FLY_RISE = 8
const JUMP = 8.6 // 1.28 blocks high
const GRAVITY = 29
const KNOCKBACK = 7 // moves the body by about a block
const KNOCKBACK_UP = 4.5
const FALL = 60
const SWIM = 3.4
const SWIM_RISE = 3.6
const SINK = 2.4
const STEP = 0.4 // the longest distance moved per collision check, in blocks: less than any block
const SKIN = 1e-3
const STEP_UP = 0.55 // what is at most this high is walked onto without a jump: slabs, and each half of stairs
const AUTO_JUMP = 1.1 // what is at most this high is jumped onto by itself, if the player wants that
const CLIMB = 3.2
const CREEP = 0.01 // a velocity this close to the target is the target: each change of the pose is sent to the server

export interface Blocks {
  get(x: number, y: number, z: number): number
}

/** The player's movement input; forward and right are in [−1, 1]. */
export interface Intent {
  forward: number
  right: number
  up: boolean
  down: boolean
  fast: boolean
  /** Jump by oneself onto what is a block high. */
  autoJump: boolean
}

export class Body {
  x = 0
  y = 0
  z = 0
  vx = 0
  vy = 0
  vz = 0
  yaw = 0
  pitch = 0
  flying = false
  onGround = false
  inWater = false
  private blockedSideways = false
  /** The player sneaks, as others see it. */
  sneaks = false
  private walks = false // and may step up
  private autoJump = false // of the intent
  private jumps = false // with the next step, by itself
  /** How far the eyes are below their place, for a smooth view of steps. */
  stepped = 0

  place(x: number, y: number, z: number): void {
    this.x = x
    this.y = y
    this.z = z
    this.vx = this.vy = this.vz = 0
  }

  /** The speed along the ground, in blocks/s; 0 in the air. */
  get walkingSpeed(): number {
    return this.onGround ? Math.hypot(this.vx, this.vz) : 0
  }

  /** Applies the knockback of a hit by a player at (fromX, fromZ). */
  knockBack(fromX: number, fromZ: number): void {
    const away = Math.hypot(this.x - fromX, this.z - fromZ)
    if (away > 0) {
      this.vx += ((this.x - fromX) / away) * KNOCKBACK
      this.vz += ((this.z - fromZ) / away) * KNOCKBACK
    }
    this.vy = Math.max(this.vy, KNOCKBACK_UP)
  }

  /** One step of dt seconds (at most 0.05). How high and far a jump leads does not depend on how many steps it takes. */
  step(blocks: Blocks, intent: Intent, dt: number): void {
    const { vx, vz } = this // the body moves with the mean of the velocities before and after
    this.inWater = blocks.get(Math.floor(this.x), Math.floor(this.y + 0.4), Math.floor(this.z)) === WATER
    this.sneaks = intent.down && !this.flying && !this.inWater
    this.steer(intent, dt)
    let rise: number // blocks/s
    if (this.flying) rise = this.fly(intent, dt)
    else if (this.inWater) rise = this.swim(intent, dt)
    else if (isClimbable(blocks.get(Math.floor(this.x), Math.floor(this.y), Math.floor(this.z))))
      rise = this.climb(intent)
    else rise = this.fall(intent, dt)
    if (overlapsSolid(blocks, this.x, this.y, this.z, false)) {
      // a block was placed inside the body: rise out of it
      this.y += 6 * dt
      this.vx = this.vy = this.vz = 0
      return
    }
    const sneaking = intent.down && this.onGround && !this.flying
    this.walks = this.onGround && !this.flying && this.vy <= 0
    this.autoJump = intent.autoJump && !sneaking && (intent.forward !== 0 || intent.right !== 0)
    if (this.walks && !this.inWater) rise = Math.min(rise, (-2 * SKIN) / dt) // onto the ground below the skin
    this.resetContacts()
    const steps = Math.max(
      1,
      Math.ceil(
        (Math.max(Math.abs(vx), Math.abs(this.vx), Math.abs(rise), Math.abs(vz), Math.abs(this.vz)) * dt) / STEP,
      ),
    )
    for (let i = 0; i < steps; i++) {
      this.moveAlong(blocks, 'y', (rise * dt) / steps, false)
      this.moveAlong(blocks, 'x', (((vx + this.vx) / 2) * dt) / steps, sneaking)
      this.moveAlong(blocks, 'z', (((vz + this.vz) / 2) * dt) / steps, sneaking)
    }
    if (this.onGround && this.flying && intent.down) this.flying = false
  }

  private resetContacts(): void {
    this.onGround = this.blockedSideways = false
  }

  private steer(intent: Intent, dt: number): void {
    const length = Math.max(1, Math.hypot(intent.forward, intent.right))
    const speed = this.flying
      ? intent.fast
        ? FLY_FAST
        : FLY
      : this.inWater
        ? SWIM
        : intent.down
          ? SNEAK
          : intent.fast
            ? SPRINT
            : WALK
    const sin = Math.sin(this.yaw)
    const cos = Math.cos(this.yaw)
    const forward = (intent.forward / length) * speed
    const right = (intent.right / length) * speed
    // looking along (−sin, cos); to the right of it is (−cos, −sin)
    const targetVX = -sin * forward - cos * right
    const targetVZ = cos * forward - sin * right
    const grip = this.flying ? 9 : this.onGround ? 16 : this.inWater ? 6 : 5 // 1/s
    const blend = 1 - Math.exp(-grip * dt)
    this.vx = approach(this.vx, targetVX, blend)
    this.vz = approach(this.vz, targetVZ, blend)
  }

  // Each of these changes the vertical velocity, and returns its mean during the step.

  private fly(intent: Intent, dt: number): number {
    const target = (Number(intent.up) - Number(intent.down)) * FLY_RISE
    const before = this.vy
    this.vy = approach(before, target, 1 - Math.exp(-10 * dt))
    return (before + this.vy) / 2
  }

  private swim(intent: Intent, dt: number): number {
    const before = this.vy
    let target = intent.up ? SWIM_RISE : intent.down ? -SWIM_RISE : -SINK
    if (intent.up && this.blockedSideways) target = JUMP * 0.8 // climb out onto the shore
    this.vy += (target - this.vy) * (1 - Math.exp(-5 * dt))
    return (before + this.vy) / 2
  }

  /** Moves along what can be climbed: up by jumping or by walking against something, and down otherwise; crouching holds. */
  private climb(intent: Intent): number {
    this.vy = intent.up || this.blockedSideways ? CLIMB : intent.down ? 0 : Math.max(-CLIMB, this.vy - 1)
    return this.vy
  }

  private fall(intent: Intent, dt: number): number {
    if ((intent.up || this.jumps) && this.onGround) this.vy = JUMP
    this.jumps = false
    const before = this.vy
    this.vy = Math.max(-FALL, before - GRAVITY * dt)
    return (before + this.vy) / 2
  }

  private moveAlong(blocks: Blocks, axis: 'x' | 'y' | 'z', by: number, keepFooting: boolean): void {
    if (by === 0) return
    const from = this[axis]
    this[axis] = from + by
    if (!overlapsSolid(blocks, this.x, this.y, this.z)) {
      if (keepFooting && !overlapsSolid(blocks, this.x, this.y - 0.6, this.z)) {
        this[axis] = from
        this[axis === 'x' ? 'vx' : 'vz'] = 0
      }
      return
    }
    if (axis !== 'y' && this.walks && this.stepUp(blocks)) return
    const reach = axis === 'y' ? (by > 0 ? HEIGHT : 0) : by > 0 ? HALF_WIDTH : -HALF_WIDTH
    // touch the nearest of the faces that were entered
    const side = 'xyz'.indexOf(axis)
    let touching = this[axis]
    anyObstacle(blocks, this.x, this.y, this.z, true, (box) => {
      const face = by > 0 ? (box[side] ?? 0) - reach - SKIN : (box[side + 3] ?? 0) - reach + SKIN
      touching = by > 0 ? Math.min(touching, face) : Math.max(touching, face)
      return false
    })
    this[axis] = by > 0 ? Math.max(from, touching) : Math.min(from, touching)
    if (overlapsSolid(blocks, this.x, this.y, this.z)) this[axis] = from
    if (axis === 'y') {
      if (by < 0) this.onGround = true
      this.vy = 0
    } else {
      this.blockedSideways = true
      this[axis === 'x' ? 'vx' : 'vz'] = 0
    }
  }

  /** Steps onto what the body has run into, if it is low enough, and reports whether it did; or begins to jump onto it. */
  private stepUp(blocks: Blocks): boolean {
    let top = this.y
    anyObstacle(blocks, this.x, this.y, this.z, true, (box) => {
      top = Math.max(top, box[4] + SKIN)
      return false
    })
    const height = top - this.y
    if (overlapsSolid(blocks, this.x, top, this.z)) return false
    if (height > STEP_UP) {
      this.jumps ||= this.autoJump && height <= AUTO_JUMP
      return false
    }
    this.y = top
    this.stepped += height
    this.onGround = true
    return true
  }
}

/** Reports whether a body at (x, y, z) overlaps a solid block. Unloaded chunks count as solid unless unloaded is false. */
export function overlapsSolid(blocks: Blocks, x: number, y: number, z: number, unloaded = true): boolean {
  return anyObstacle(blocks, x, y, z, unloaded, () => true)
}

/** Reports whether a condition holds for one of the solid boxes, in the world, that a body at (x, y, z) overlaps. */
function anyObstacle(
  blocks: Blocks,
  x: number,
  y: number,
  z: number,
  unloaded: boolean,
  is: (box: Box) => boolean,
): boolean {
  for (let by = Math.floor(y); by <= Math.floor(y + HEIGHT); by++) {
    for (let bz = Math.floor(z - HALF_WIDTH); bz <= Math.floor(z + HALF_WIDTH); bz++) {
      for (let bx = Math.floor(x - HALF_WIDTH); bx <= Math.floor(x + HALF_WIDTH); bx++) {
        const block = blocks.get(bx, by, bz)
        if (!isSolid(block) || (!unloaded && block === VOID)) continue
        for (const [x0, y0, z0, x1, y1, z1] of boxesOf(block)) {
          const box: Box = [bx + x0, by + y0, bz + z0, bx + x1, by + y1, bz + z1]
          if (overlapsBody(x, y, z, box) && is(box)) return true
        }
      }
    }
  }
  return false
}

function overlapsBody(x: number, y: number, z: number, [x0, y0, z0, x1, y1, z1]: Box): boolean {
  return (
    x + HALF_WIDTH >= x0 &&
    x - HALF_WIDTH < x1 &&
    y + HEIGHT >= y0 &&
    y < y1 &&
    z + HALF_WIDTH >= z0 &&
    z - HALF_WIDTH < z1
  )
}

function approach(velocity: number, target: number, part: number): number {
  const next = velocity + (target - velocity) * part
  return Math.abs(next - target) < CREEP ? target : next
}

/** Reports whether a body with its feet at (x, y, z) overlaps what a block would fill at (bx, by, bz). */
export function bodyTouchesBlock(
  { x, y, z }: { x: number; y: number; z: number },
  bx: number,
  by: number,
  bz: number,
  block: number,
): boolean {
  if (!isSolid(block)) return false
  return boxesOf(block).some(
    ([x0, y0, z0, x1, y1, z1]) =>
      x + HALF_WIDTH > bx + x0 &&
      x - HALF_WIDTH < bx + x1 &&
      y + HEIGHT > by + y0 &&
      y < by + y1 &&
      z + HALF_WIDTH > bz + z0 &&
      z - HALF_WIDTH < bz + z1,
  )
}
