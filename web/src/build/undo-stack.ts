// What a player can undo and redo: steps of changes that the server has acknowledged.

import type { BlockChange } from '../world/edits'

export type Change = BlockChange

/** The changes of one gesture, in the order in which they were made. */
export type Step = readonly Change[]

export const MAX_STEPS = 200
export const MAX_CHANGES = 131_072

/** Returns the step that takes another one back. */
export function inverseOf(step: Step): Step {
  return step.map(({ x, y, z, before, after }) => ({ x, y, z, before: after, after: before })).reverse()
}

export class UndoStack {
  private undo: Step[] = []
  private redo: Step[] = []

  get sizes(): { undo: number; redo: number } {
    return { undo: this.undo.length, redo: this.redo.length }
  }

  /** Adds what the player has done: what they undid before cannot be redone any more. */
  add(step: Step): void {
    if (step.length === 0) return
    this.redo = []
    this.pushUndo(step)
  }

  /** Adds a change to the latest step, or to the latest one with a change at a place. */
  extend(change: Change, at?: { x: number; y: number; z: number }): void {
    const has = (c: Change) => !at || (c.x === at.x && c.y === at.y && c.z === at.z)
    const last = this.undo.findLastIndex((step) => step.some(has))
    if (last < 0) this.pushUndo([change])
    else this.undo[last] = [...(this.undo[last] ?? []), change]
    this.drop()
  }

  takeUndo(): Step | null {
    return this.undo.pop() ?? null
  }

  takeRedo(): Step | null {
    return this.redo.pop() ?? null
  }

  /** Adds a step that undoing or redoing it again would take back. */
  pushUndo(step: Step): void {
    if (step.length > 0) this.undo.push(step)
    this.drop()
  }

  pushRedo(step: Step): void {
    if (step.length > 0) this.redo.push(step)
  }

  clear(): void {
    this.undo = []
    this.redo = []
  }

  /** Drops the oldest steps beyond the limits. */
  private drop(): void {
    let changes = this.undo.reduce((n, step) => n + step.length, 0)
    while (this.undo.length > MAX_STEPS || (changes > MAX_CHANGES && this.undo.length > 1)) {
      changes -= this.undo.shift()?.length ?? 0
    }
  }
}
