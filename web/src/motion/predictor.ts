// Dead reckoning. The server updates an avatar only when it is not where its velocity predicts, so between updates it moves
// on at that velocity. Times are in ticks, which may be fractions; velocities are in blocks per tick.

/** Ticks after which an avatar without an update stops. */
const MAX_TICKS = 40

export class Predictor {
  private velocityX = 0
  private velocityZ = 0
  private climb = 0 // upwards
  private movedTick: number // of x and z
  private heightTick: number // of y

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

  /** Reports whether the predicted position changes at a time. */
  isMoving(tick: number): boolean {
    if (this.climb !== 0 && tick - this.heightTick < MAX_TICKS + 1) return true
    return (this.velocityX !== 0 || this.velocityZ !== 0) && tick - this.movedTick < MAX_TICKS + 1
  }

  /** Returns the predicted position at a time. */
  at(tick: number): { x: number; y: number; z: number } {
    const moved = Math.min(MAX_TICKS, tick - this.movedTick)
    const climbed = Math.min(MAX_TICKS, tick - this.heightTick)
    return { x: this.x + this.velocityX * moved, y: this.y + this.climb * climbed, z: this.z + this.velocityZ * moved }
  }
}
