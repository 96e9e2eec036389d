// The changes that a tool makes, one by one, or many of a chunk at once if the player may: those that are possible now are sent as fast as
// the pace allows, the others wait.

import { chunkKey, chunkOf } from '../world/coords'
import { BULK_BLOCKS } from '../world/edits'
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
  /** Makes a bulk edit of blocks of one chunk, and returns its number. Without it, blocks are edited one by one. */
  readonly editBulk?: (wanted: readonly Wanted[]) => number
  /** Reports whether what was refused for a reason may be possible later, as when the blocks of an hour are used up. */
  mayRetry(refusal: string): boolean
}

/** The number of bulk edits under way. */
const BULK_WINDOW = 8
/** How many blocks are looked at before the next frame. */
const LOOKED_AT = 8192
/** Refusals after which what was wanted may be possible at once: something had changed, or somebody is in the way. */
const MAY_CHANGE = new Set(['changed', 'inside_player'])
const MAX_AGAIN = 100

/** After so many edits were refused in a row, the others would be too. */
const GIVE_UP_AFTER = WINDOW

export class Work {
  readonly total: number
  /** What the server has acknowledged. */
  readonly changes: Change[] = []
  /** The number of places where other blocks stay. */
  skipped = 0
  /** The number of blocks that the server refused for good, and why it refused the last ones. */
  refused = 0
  refusal = ''
  /** What was refused, or given up because of that, and may be possible later. */
  readonly missed: Wanted[] = []
  private there = 0
  private refusedInARow = 0
  private stopped = false
  private again = 0 // refusals in a row after which it was tried again
  private readonly underWay = new Map<number, readonly Wanted[]>() // by sequence number

  constructor(
    private waiting: readonly Wanted[],
    private readonly site: Site,
  ) {
    this.total = waiting.length
    if (!site.editBulk) return
    const byChunk = new Map<number, Wanted[]>()
    for (const wanted of waiting) {
      const key = chunkKeyOf(wanted)
      const same = byChunk.get(key)
      if (same) same.push(wanted)
      else byChunk.set(key, [wanted])
    }
    this.waiting = [...byChunk.values()].flat()
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
      this.waiting.length > 0 &&
      this.underWay.size === 0 &&
      this.waiting.slice(0, LOOKED_AT).every((w) => this.site.judge(w) === 'later')
    )
  }

  /** Sends what is possible now, in ms. */
  advance(now: number, pace: Pace): void {
    if (this.waiting.length === 0) return
    if (this.site.editBulk) {
      this.advanceBulk(this.site.editBulk)
      return
    }
    let full = false
    this.waiting = this.waiting.filter((wanted) => {
      full ||= !pace.allows(now, this.underWay.size)
      if (full) return true
      const verdict = this.judge(wanted)
      if (verdict === 'later') return true
      if (verdict !== 'now') return false
      const seq = this.site.edit(wanted)
      if (seq === null) return true
      this.underWay.set(seq, [wanted])
      pace.sent()
      return false
    })
  }

  /** Sends bulk edits of the chunks that come next. What has to wait comes after the rest. */
  private advanceBulk(edit: (wanted: readonly Wanted[]) => number): void {
    for (let left = LOOKED_AT; left > 0 && this.underWay.size < BULK_WINDOW;) {
      const [first] = this.waiting
      if (!first) return
      const chunk = chunkKeyOf(first)
      const now: Wanted[] = []
      const later: Wanted[] = []
      let looked = 0
      for (const wanted of this.waiting) {
        if (looked >= left || now.length >= BULK_BLOCKS || chunkKeyOf(wanted) !== chunk) break
        looked++
        const verdict = this.judge(wanted)
        if (verdict === 'now') now.push(wanted)
        if (verdict === 'later') later.push(wanted)
      }
      left -= looked
      this.waiting = [...this.waiting.slice(looked), ...later]
      if (now.length > 0) this.underWay.set(edit(now), now)
    }
  }

  private judge(wanted: Wanted): Verdict {
    const verdict = this.site.judge(wanted)
    if (verdict === 'there') this.there++
    if (verdict === 'skip') this.skipped++
    return verdict
  }

  /** Notes that an edit is committed, with what it has changed; returns false if it is not one of these. */
  committed(seq: number, ...changes: readonly Change[]): boolean {
    if (!this.underWay.delete(seq)) return false
    this.refusedInARow = this.again = 0
    this.changes.push(...changes)
    return true
  }

  /** Notes that an edit is refused for good; returns false if it is not one of these. */
  reject(seq: number, refusal: string): boolean {
    const wanted = this.underWay.get(seq)
    if (!wanted) return false
    this.underWay.delete(seq)
    if (this.site.editBulk && MAY_CHANGE.has(refusal) && !this.stopped && ++this.again <= MAX_AGAIN) {
      this.waiting = [...this.waiting, ...wanted]
      return true
    }
    this.refused += wanted.length
    this.refusal = refusal
    const gaveUp = ++this.refusedInARow >= GIVE_UP_AFTER
    if (MAY_CHANGE.has(refusal) || this.site.mayRetry(refusal))
      this.missed.push(...wanted, ...(gaveUp ? this.waiting : []))
    if (gaveUp) this.stop()
    return true
  }

  owns(seq: number): boolean {
    return this.underWay.has(seq)
  }

  /** Sends no more. The edits under way still finish. */
  stop(): void {
    this.stopped = true
    this.waiting = []
  }
}

function chunkKeyOf({ x, z }: Wanted): number {
  return chunkKey(chunkOf(x), chunkOf(z))
}
