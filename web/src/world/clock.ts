// The world's time of day: 1440 game minutes a day, running by the local clock between the server's words.

export const DAY_MINUTES = 1440

export class Clock {
  private minutes = 10 * 60
  private at = 0
  private dayMs = 20 * 60_000

  /** The server's word: minutes since midnight now, and how long a day lasts. Small differences are not jumped. */
  set(minutes: number, now: number, dayMs = this.dayMs): void {
    this.dayMs = Math.max(1000, dayMs)
    this.minutes = minutes
    this.at = now
  }

  /** Minutes since midnight at time now (ms). */
  minutesAt(now: number): number {
    const minutes = this.minutes + ((now - this.at) / this.dayMs) * DAY_MINUTES
    return ((minutes % DAY_MINUTES) + DAY_MINUTES) % DAY_MINUTES
  }
}

export function clockText(minutes: number): string {
  const whole = Math.floor(minutes)
  return `${String(Math.floor(whole / 60)).padStart(2, '0')}:${String(whole % 60).padStart(2, '0')}`
}
