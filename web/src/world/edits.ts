// Edits that the server has not acknowledged yet. They are applied locally at once; an ack confirms or reverts them. They
// survive a lost connection and are sent again under the same sequence number, which the region applies at most once.
// While an edit is pending, committed changes by others at the same place are stored beneath it.

import { blockKey, chunkOf, SIZE } from './coords'

/** The most blocks of a bulk edit: the runs of so many never take more than the server accepts, 12,288 bytes. */
export const BULK_BLOCKS = 1536

/** A block that is changed. */
export interface BlockChange {
  readonly x: number
  readonly y: number
  readonly z: number
  readonly before: number
  readonly after: number
}

export interface PendingEdit {
  readonly seq: number
  readonly x: number
  readonly y: number
  readonly z: number
  readonly block: number
  /** The block that was there when the edit was made. */
  readonly before: number
  /** The text of a sign. */
  readonly text: string
  /** The edit without which this one is not to be made: that of stairs, beside which others become a corner. */
  readonly cause?: PendingEdit | undefined
  /** Of a bulk edit, what it changes in the chunk at (x, z), all or nothing; y is -1. It is not applied here. */
  readonly changes?: readonly BlockChange[]
}

interface Blocks {
  get(x: number, y: number, z: number): number
  set(x: number, y: number, z: number, block: number): boolean
}

/** How far ahead of its clock a gateway accepts a sequence number: ten minutes, in microseconds. */
const MAX_AHEAD = 6e8

export class Edits {
  private pending: PendingEdit[] = []
  private beneath = new Map<string, number>() // the last committed block at each place with a pending edit
  private arrived = new Set<number>() // of the bulk edits that are pending, those whose blocks are here
  private awaited: PendingEdit[] = [] // bulk edits that are answered, and whose blocks are not here yet
  private nextSeq = 1

  constructor(private readonly blocks: Blocks) {}

  /** The pending edits in the order they were made; they are sent again after a reconnect. */
  get waiting(): readonly PendingEdit[] {
    return this.pending
  }

  /** Continues from the server's next sequence number or the own one, if that is greater. One too far ahead would be refused. */
  setNextSeq(nextSeq: number): void {
    const last = this.pending.at(-1)?.seq ?? 0
    const own = this.nextSeq > nextSeq + MAX_AHEAD ? 0 : this.nextSeq
    this.nextSeq = Math.max(nextSeq, last + 1, own)
  }

  /** Skips the sequence numbers below one. */
  skipTo(seq: number): void {
    this.nextSeq = Math.max(this.nextSeq, seq)
  }

  /** Makes an edit and applies it locally. Returns null if its chunk is not loaded. */
  make(x: number, y: number, z: number, block: number, text = '', cause?: PendingEdit): PendingEdit | null {
    const key = blockKey(x, y, z)
    const before = this.blocks.get(x, y, z)
    if (!this.blocks.set(x, y, z, block)) return null
    if (!this.beneath.has(key)) this.beneath.set(key, before)
    const edit = { seq: this.nextSeq++, x, y, z, block, before, text, cause }
    this.pending.push(edit)
    return edit
  }

  /** Makes a bulk edit of blocks of one chunk. */
  makeBulk(changes: readonly BlockChange[]): PendingEdit {
    const [{ x, z } = { x: 0, z: 0 }] = changes
    const seq = this.nextSeq++
    const edit = { seq, x: chunkOf(x) * SIZE, y: -1, z: chunkOf(z) * SIZE, block: 0, before: 0, text: '', changes }
    this.pending.push(edit)
    return edit
  }

  /** Completes an edit if it is pending; block is what the world has there now. */
  acknowledge(seq: number, block: number): void {
    const index = this.pending.findIndex((edit) => edit.seq === seq)
    const edit = this.pending[index]
    if (!edit) return
    this.pending.splice(index, 1)
    if (edit.changes) {
      // Its blocks come with the others' changes, in the order of the region, before or after the answer, or with the whole chunk.
      const [first] = edit.changes
      const isHere = this.arrived.delete(seq) || !first || this.blocks.get(first.x, first.y, first.z) === first.after
      if (!isHere) this.awaited.push(edit)
      return
    }
    const key = blockKey(edit.x, edit.y, edit.z)
    if (this.newest(edit)) {
      this.beneath.set(key, block)
    } else {
      this.beneath.delete(key)
      this.blocks.set(edit.x, edit.y, edit.z, block)
    }
  }

  /** Returns the pending edits in one chunk, in order. */
  waitingIn(cx: number, cz: number): PendingEdit[] {
    return this.pending.filter((edit) => chunkOf(edit.x) === cx && chunkOf(edit.z) === cz)
  }

  /** Reports whether what an own edit makes of the block is not here yet, as far as is known. */
  isUnderway(x: number, y: number, z: number): boolean {
    return (
      this.pending.some((edit) => edit.x === x && edit.y === y && edit.z === z) ||
      this.awaited.some((edit) => chunkOf(edit.x) === chunkOf(x) && chunkOf(edit.z) === chunkOf(z))
    )
  }

  find(seq: number): PendingEdit | undefined {
    return this.pending.find((edit) => edit.seq === seq)
  }

  /** Reverts an edit whose refusal does not include the block there: restores the last committed block. */
  withdraw(seq: number): void {
    const edit = this.find(seq)
    if (edit?.changes) {
      this.pending.splice(this.pending.indexOf(edit), 1)
      this.arrived.delete(seq)
    }
    const committed = edit && this.beneath.get(blockKey(edit.x, edit.y, edit.z))
    if (committed !== undefined) this.acknowledge(seq, committed)
  }

  /** Reverts the edits that an edit was to cause, and that were not sent yet: it is refused. */
  withdrawCausedBy(edit: PendingEdit): void {
    for (const { seq } of this.pending.filter(({ cause }) => cause === edit)) this.withdraw(seq)
  }

  /** Applies a committed change by any player. */
  applyCommitted(x: number, y: number, z: number, block: number): void {
    const key = blockKey(x, y, z)
    if (this.beneath.has(key)) this.beneath.set(key, block)
    else this.blocks.set(x, y, z, block)
    const isHere = ({ changes }: PendingEdit) =>
      changes?.[0] && blockKey(changes[0].x, changes[0].y, changes[0].z) === key
    for (const edit of this.pending) if (isHere(edit)) this.arrived.add(edit.seq)
    this.awaited = this.awaited.filter((edit) => !isHere(edit))
  }

  /** Applies the pending edits to a chunk that was just loaded. */
  chunkLoaded(cx: number, cz: number): void {
    this.awaited = this.awaited.filter((edit) => chunkOf(edit.x) !== cx || chunkOf(edit.z) !== cz)
    for (const edit of this.waitingIn(cx, cz)) {
      if (edit.changes) continue
      const { x, y, z, block } = edit
      if (edit === this.pending.find((other) => samePlace(other, edit))) {
        this.beneath.set(blockKey(x, y, z), this.blocks.get(x, y, z))
      }
      if (edit === this.newest(edit)) this.blocks.set(x, y, z, block)
    }
  }

  /** Discards all edits, for another world or another player. */
  clear(): void {
    this.pending = []
    this.arrived.clear()
    this.awaited = []
    this.beneath.clear()
    this.nextSeq = 1
  }

  /** Returns the newest pending edit at the place of an edit. */
  private newest(edit: PendingEdit): PendingEdit | undefined {
    return this.pending.findLast((other) => samePlace(other, edit))
  }
}

function samePlace(a: PendingEdit, b: PendingEdit): boolean {
  return a.x === b.x && a.y === b.y && a.z === b.z
}
