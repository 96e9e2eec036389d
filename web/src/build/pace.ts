// How fast a tool edits. The server limits the edits of each player, by a rate that depends on their role, and does not say which: it
// refuses edits that come too fast. The pace begins at the usual rate, grows slowly, and falls at each refusal.

/** In edits a second. */
const START = 20
const SLOWEST = 1
const FASTEST = 1000 // no role has more
const GROWTH = 1.002 // with each edit that is committed
const FALL = 0.7
/** How many edits the server accepts at once from a player who has not edited for a while, and some less. */
const AT_ONCE = 40
/** Refusals so soon after another, in milliseconds, have the same cause. */
const CALM_MS = 800

/** The number of edits under way: sent, and not yet answered. */
export const WINDOW = 16

export class Pace {
  private rate = START
  private allowance = AT_ONCE // edits that may be sent now
  private countedAt = 0 // ms
  private refusedAt = -Infinity

  get perSecond(): number {
    return this.rate
  }

  /** Reports whether an edit may be sent now, in ms, beside those under way. */
  allows(now: number, underWay: number): boolean {
    this.allowance = Math.min(AT_ONCE, this.allowance + (this.rate * Math.max(0, now - this.countedAt)) / 1000)
    this.countedAt = now
    return underWay < WINDOW && this.allowance >= 1
  }

  sent(): void {
    this.allowance--
  }

  committed(): void {
    this.rate = Math.min(FASTEST, this.rate * GROWTH)
  }

  /** The server has refused an edit because of the rate. */
  refused(now: number): void {
    this.allowance = 0
    this.countedAt = now
    if (now - this.refusedAt < CALM_MS) return
    this.refusedAt = now
    this.rate = Math.max(SLOWEST, this.rate * FALL)
  }
}
