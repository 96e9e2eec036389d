// The world's time of day: 1440 game minutes per day. It runs on the local clock between updates from the server.

export const DAY_MINUTES = 1440

export class Clock {
  private minutes = 10 * 60
  private updatedAt = 0
  private dayMs = 20 * 60_000
  private readonly from = { days: 0, now: 0 }

  /** Sets the server's time: minutes since midnight now, and the duration of a day in ms. */
  set(minutes: number, now: number, dayMs = this.dayMs): void {
    this.dayMs = Math.max(1000, dayMs)
    this.minutes = minutes
    this.updatedAt = now
  }

  /** Sets the server's clock, in ms since 1970. */
  setDate(unix: number, now: number): void {
    Object.assign(this.from, { days: unix / this.dayMs, now })
  }

  /** Returns the days of the world since 1970 at now, in ms. They do not begin at midnight. */
  daysAt(now: number): number {
    return this.from.days + (now - this.from.now) / this.dayMs
  }

  /** Returns the minutes since midnight at now, in ms. */
  minutesAt(now: number): number {
    const minutes = this.minutes + ((now - this.updatedAt) / this.dayMs) * DAY_MINUTES
    return ((minutes % DAY_MINUTES) + DAY_MINUTES) % DAY_MINUTES
  }
}

export function clockText(minutes: number): string {
  const whole = Math.floor(minutes)
  return `${String(Math.floor(whole / 60)).padStart(2, '0')}:${String(whole % 60).padStart(2, '0')}`
}
