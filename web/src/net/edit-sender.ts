// Sends the pending edits, and sends them again after a reconnect or a temporary refusal. A region applies each number once, but
// remembers only the newest WINDOW of a player, and applies an older number that comes late over what came before it. So an edit waits for
// - an older one at the same place, until that is acknowledged
// - its cause, until that is acknowledged: if it is refused, so is this one
// - one in the same cell, thus perhaps in the same region, that is WINDOW numbers older
// - its chunk, after a reconnect.

import { blockKey, chunkKey, chunkOf, SIZE } from '../world/coords'
import type { Edits, PendingEdit } from '../world/edits'

const RETRY_MS = 700
const MAX_RETRIES = 40
const WINDOW = 64 // recentWindow in world/recent.go
const CELL = 16 * SIZE // blocks; no region is larger: FoundingLabel in grid/label.go
/** How long after a reconnect edits wait for older ones whose chunk has not come: it may be out of view. */
const PATIENCE_MS = 20_000

export class EditSender {
  private sent = new Set<number>() // numbers; since the last welcome
  private patient = false
  private readonly missing = new Set<number>() // chunks of pending edits that have not come since the last welcome
  private readonly retries = new Map<number, number>() // of edits, by number

  constructor(
    private readonly edits: Pick<Edits, 'waiting'>,
    private readonly send: (edit: PendingEdit) => void,
  ) {}

  /** Begins after a welcome: all pending edits are to be sent again. */
  begin(): void {
    const sent = (this.sent = new Set<number>())
    this.retries.clear()
    this.missing.clear()
    for (const edit of this.edits.waiting) this.missing.add(chunkKeyOf(edit))
    this.patient = this.missing.size > 0
    if (!this.patient) return
    window.setTimeout(() => {
      if (this.sent !== sent) return // there was another welcome
      this.patient = false
      this.sendDue()
    }, PATIENCE_MS)
  }

  chunkLoaded(x: number, z: number): void {
    this.missing.delete(chunkKey(x, z))
    this.sendDue()
  }

  /** Sends the edits that are pending, not sent yet, and need not wait. */
  sendDue(): void {
    const places = new Set<string>() // of older edits
    const oldest = new Map<number, number>() // numbers, by cell
    for (const edit of this.edits.waiting) {
      const cell = chunkKey(Math.floor(edit.x / CELL), Math.floor(edit.z / CELL))
      const first = oldest.get(cell)
      if (first !== undefined && edit.seq >= first + WINDOW) continue
      const missing = this.missing.has(chunkKeyOf(edit))
      if (first === undefined && (!missing || this.patient)) oldest.set(cell, edit.seq)
      const place = blockKey(edit.x, edit.y, edit.z)
      const caused = !edit.cause || !this.edits.waiting.includes(edit.cause)
      if (!missing && caused && !places.has(place) && !this.sent.has(edit.seq)) {
        this.sent.add(edit.seq)
        this.send(edit)
      }
      places.add(place)
    }
  }

  /** Sends an edit again later; returns false if that was done too often. */
  retry(seq: number): boolean {
    const count = (this.retries.get(seq) ?? 0) + 1
    if (count > MAX_RETRIES) return false
    this.retries.set(seq, count)
    const { sent } = this // a welcome replaces it
    window.setTimeout(() => {
      sent.delete(seq)
      this.sendDue()
    }, RETRY_MS)
    return true
  }

  /** Sends what has waited for an edit that is not pending any more. */
  settled(seq: number): void {
    this.retries.delete(seq)
    this.sent.delete(seq)
    this.sendDue()
  }
}

function chunkKeyOf({ x, z }: PendingEdit): number {
  return chunkKey(chunkOf(x), chunkOf(z))
}
