// How a player chooses what a tool does: they point at places and click at one or two of them, then they confirm.

import type { Vector } from '../player/ray'
import type { Shape } from './shapes'

export type Tool = Shape | 'fill' | 'clear' | 'copy' | 'paste'

/** The place that is asked for, or whether the player agrees. */
export type Stage = 'first' | 'second' | 'confirm'

export class Gesture {
  private readonly fixed: Vector[] = []
  private pointed: Vector | null = null

  constructor(readonly tool: Tool) {}

  get stage(): Stage {
    const needed = this.tool === 'fill' || this.tool === 'paste' ? 1 : 2
    return this.fixed.length === needed ? 'confirm' : this.fixed.length === 0 ? 'first' : 'second'
  }

  /** The first corner, once it is chosen. */
  get first(): Vector | null {
    return this.fixed[0] ?? null
  }

  /** The corners as they would be after a click now. */
  get corners(): readonly [Vector, Vector] | null {
    const first = this.fixed[0] ?? this.pointed
    return first && [first, this.fixed[1] ?? this.pointed ?? first]
  }

  /** The player points at a place, or at none. */
  point(at: Vector | null): void {
    if (this.stage !== 'confirm') this.pointed = at
  }

  /** Chooses the place pointed at; returns false if there is none. */
  choose(): boolean {
    if (!this.pointed || this.stage === 'confirm') return false
    this.fixed.push(this.pointed)
    return true
  }

  /** Takes the last choice back; returns false if there is none. */
  back(): boolean {
    return this.fixed.pop() !== undefined
  }

  /** Moves the last corner up or down in a world of some height, before the player agrees. */
  raise(steps: number, height: number): void {
    const last = this.fixed.at(-1)
    if (this.stage !== 'confirm' || !last) return
    this.fixed[this.fixed.length - 1] = [last[0], Math.min(Math.max(last[1] + steps, 0), height - 1), last[2]]
  }
}
