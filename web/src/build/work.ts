// The changes that a tool makes, one by one: those that are possible now are sent as fast as the pace allows, the others wait.

import { WINDOW, type Pace } from './pace'
import type { Change } from './undo-stack'

/** A block that is to be placed. */
export interface Wanted {
  readonly x: number
  readonly y: number
  readonly z: number
  readonly block: number
  /** If it is given, any other block that is there stays. */
  readonly instead?: number
}

/** now: it can be placed. later: it cannot be placed from here. there: it is there already. skip: what is there stays. */
export type Verdict = 'now' | 'later' | 'there' | 'skip'

export interface Site {
  judge(wanted: Wanted): Verdict
  /** Makes an edit, and returns its sequence number; null if it could not be made. */
  edit(wanted: Wanted): number | null
}

/** After so many edits were refused in a row, the others would be too. */
const GIVE_UP_AFTER = WINDOW

export class Work {
  readonly total: number
  /** What the server has acknowledged. */
  readonly changes: Change[] = []
  /** The number of places where other blocks stay. */
  skipped = 0
  /** The number of edits that the server refused for good, and why it refused the last one. */
  refused = 0
  refusal = ''
  private there = 0
  private refusedInARow = 0
  private readonly underWay = new Map<number, Wanted>() // by sequence number

  constructor(
    private waiting: readonly Wanted[],
    private readonly site: Site,
  ) {
    this.total = waiting.length
  }

  /** The number of blocks that need nothing any more. */
  get done(): number {
    return this.changes.length + this.there + this.skipped + this.refused
  }

  get finished(): boolean {
    return this.waiting.length === 0 && this.underWay.size === 0
  }

  /** What is still to be done, without the edits under way. */
  get left(): readonly Wanted[] {
    return this.waiting
  }

  /** Reports whether what is left waits for the player to go elsewhere. */
  get stuck(): boolean {
    return (
      this.waiting.length > 0 && this.underWay.size === 0 && this.waiting.every((w) => this.site.judge(w) === 'later')
    )
  }

  /** Sends what is possible now, in ms. */
  advance(now: number, pace: Pace): void {
    if (this.waiting.length === 0) return
    let full = false
    this.waiting = this.waiting.filter((wanted) => {
      full ||= !pace.allows(now, this.underWay.size)
      if (full) return true
      const verdict = this.site.judge(wanted)
      if (verdict === 'later') return true
      if (verdict === 'there') this.there++
      if (verdict === 'skip') this.skipped++
      if (verdict !== 'now') return false
      const seq = this.site.edit(wanted)
      if (seq === null) return true
      this.underWay.set(seq, wanted)
      pace.sent()
      return false
    })
  }

  /** Notes that an edit is committed; returns false if it is not one of these. */
  committed(seq: number, change: Change): boolean {
    if (!this.underWay.delete(seq)) return false
    this.refusedInARow = 0
    this.changes.push(change)
    return true
  }

  /** Notes that an edit is refused for good; returns false if it is not one of these. */
  reject(seq: number, refusal: string): boolean {
    if (!this.underWay.delete(seq)) return false
    this.refused++
    this.refusal = refusal
    if (++this.refusedInARow >= GIVE_UP_AFTER) this.stop()
    return true
  }

  owns(seq: number): boolean {
    return this.underWay.has(seq)
  }

  /** Sends no more. The edits under way still finish. */
  stop(): void {
    this.waiting = []
  }
}
