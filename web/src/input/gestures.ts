// What fingers on the world mean: a finger that moves turns the camera, a short touch is a tap, and a finger that rests holds.
// Positions are in pixels, times in milliseconds; both are arguments.

/** How far a finger may move and still rest, in pixels. */
const SLOP = 10
const HOLD_MS = 350

export interface GestureEvents {
  /** A finger moved over the world. */
  turned(x: number, y: number): void
  /** A resting finger is at a point; null once there is none. It is called before the events below. */
  pointed(at: Point | null): void
  tapped(): void
  holdBegan(): void
  holdEnded(): void
}

export interface Point {
  x: number
  y: number
}

interface Finger extends Point {
  startX: number
  startY: number
  since: number
  state: 'resting' | 'turning' | 'holding'
}

export class Gestures {
  private readonly fingers = new Map<number, Finger>()

  constructor(private readonly events: GestureEvents) {}

  down(id: number, x: number, y: number, now: number): void {
    // a second finger beside one that points only turns the camera
    const state = this.pointing() ? 'turning' : 'resting'
    this.fingers.set(id, { x, y, startX: x, startY: y, since: now, state })
    if (state === 'resting') this.events.pointed({ x, y })
  }

  move(id: number, x: number, y: number): void {
    const finger = this.fingers.get(id)
    if (!finger) return
    const [dx, dy] = [x - finger.x, y - finger.y]
    if (finger.state === 'resting') {
      if (Math.hypot(x - finger.startX, y - finger.startY) <= SLOP) return
      finger.state = 'turning'
      this.events.pointed(null)
    }
    finger.x = x
    finger.y = y
    if (finger.state === 'holding') this.events.pointed({ x, y })
    else this.events.turned(dx, dy)
  }

  up(id: number, now: number): void {
    this.update(now)
    const finger = this.fingers.get(id)
    this.fingers.delete(id)
    if (finger?.state === 'resting') this.events.tapped()
    if (finger?.state === 'holding') this.events.holdEnded()
    if (finger && finger.state !== 'turning') this.events.pointed(null)
  }

  /** Forgets a finger, which the browser has taken for something else. */
  cancel(id: number): void {
    const finger = this.fingers.get(id)
    this.fingers.delete(id)
    if (finger?.state === 'holding') this.events.holdEnded()
    if (finger && finger.state !== 'turning') this.events.pointed(null)
  }

  /** Begins to hold when a finger has rested for long enough; called once per frame. */
  update(now: number): void {
    for (const finger of this.fingers.values()) {
      if (finger.state !== 'resting' || now - finger.since < HOLD_MS) continue
      finger.state = 'holding'
      this.events.holdBegan()
    }
  }

  private pointing(): boolean {
    return [...this.fingers.values()].some(({ state }) => state !== 'turning')
  }
}
