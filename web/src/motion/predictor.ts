// Dead reckoning. The server updates an avatar only when it is not where its velocity predicts, so between updates it moves
// on at that velocity. Times are in ticks, which may be fractions; velocities are in blocks per tick.

/** Ticks after which an avatar without an update stops. */
const MAX_TICKS = 40
/** The speed of a correction, in blocks per tick: about a walker's. What makes up for lost time too fast looks like a jump. */
const GLIDE_SPEED = 0.2
/** The ticks after which even a long correction is complete. */
const MAX_GLIDE_TICKS = 20

/** The lengths of corrections that are shown bit by bit, in blocks. */
export interface GlideRange {
  least: number
  most: number
}

export interface Position {
  x: number
  y: number
  z: number
}

export class Predictor {
  private velocityX = 0
  private velocityZ = 0
  private climb = 0 // upwards
  private movedTick: number // of x and z
  private heightTick: number // of y
  /** The last correction, in blocks for each tick until its end: a turn of which the update came late was not predicted. */
  private glide: Position = { x: 0, y: 0, z: 0 }
  private glideEnd = -Infinity

  constructor(
    private x: number,
    private y: number,
    private z: number,
    tick: number,
  ) {
    this.movedTick = this.heightTick = tick
  }

  setPlace(x: number, z: number, tick: number): void {
    this.x = x
    this.z = z
    this.movedTick = tick
  }

  setHeight(y: number, climb: number, tick: number): void {
    this.y = y
    this.climb = climb
    this.heightTick = tick
  }

  setVelocity(x: number, z: number): void {
    this.velocityX = x
    this.velocityZ = z
  }

  /** Reports whether the predicted position changes after a time. */
  isMoving(tick: number): boolean {
    if (tick < this.glideEnd) return true
    if (this.climb !== 0 && tick - this.heightTick < MAX_TICKS) return true
    return (this.velocityX !== 0 || this.velocityZ !== 0) && tick - this.movedTick < MAX_TICKS
  }

  /**
   * After an update: glides from where the avatar was shown at a time to where it is. If the update moved it by less than least blocks,
   * or by more than most, it is shown there at once.
   */
  glideFrom(shown: Position, tick: number, { least, most }: GlideRange): void {
    const updated = this.at(tick)
    if (Math.hypot(shown.x - updated.x, shown.z - updated.z) < least) return
    this.glideEnd = -Infinity
    const { x, y, z } = this.at(tick)
    const far = Math.hypot(shown.x - x, shown.y - y, shown.z - z)
    if (far === 0 || far > most) return
    const ticks = Math.min(MAX_GLIDE_TICKS, far / GLIDE_SPEED)
    this.glide = { x: (shown.x - x) / ticks, y: (shown.y - y) / ticks, z: (shown.z - z) / ticks }
    this.glideEnd = tick + ticks
  }

  /** Returns the predicted position at a time. */
  at(tick: number): Position {
    const moved = Math.min(MAX_TICKS, tick - this.movedTick)
    const climbed = Math.min(MAX_TICKS, tick - this.heightTick)
    const left = Math.max(0, this.glideEnd - tick)
    return {
      x: this.x + this.velocityX * moved + this.glide.x * left,
      y: this.y + this.climb * climbed + this.glide.y * left,
      z: this.z + this.velocityZ * moved + this.glide.z * left,
    }
  }
}
