// The past of a place: the blocks that players have changed, as they were at a moment. Only what this page shows is changed, and put back at
// the end. Changes that come meanwhile are kept until then.

import { blockKey, chunkOf } from './coords'
import type { Chunk, World } from './world'

/** A change of a block, by a player or a rollback. */
export interface PastChange {
  /** ms since 1970. */
  readonly time: number
  readonly name: string
  readonly x: number
  readonly y: number
  readonly z: number
  readonly before: number
  readonly after: number
}

/** A block that may not be shown as it is. */
interface Place {
  readonly x: number
  readonly y: number
  readonly z: number
  /** What it is, and what is shown. */
  block: number
  shown: number
}

export class Past {
  private moment: number
  private readonly places = new Map<string, Place>()
  private writing = false

  /** The changes are those of the blocks for whose columns inside returns true, oldest first. */
  constructor(
    private readonly world: Pick<World, 'get' | 'set' | 'hold'>,
    readonly changes: readonly PastChange[],
    private readonly inside: (x: number, z: number) => boolean,
  ) {
    this.moment = changes.length
    world.hold = (x, y, z, block) => this.keep(x, y, z, block)
  }

  /** How many of the changes are shown. If it is all of them, the world is shown as it is. */
  get at(): number {
    return this.moment
  }

  /** Shows the blocks as they were after so many changes. */
  seek(at: number): void {
    const { changes } = this
    const to = Math.max(0, Math.min(changes.length, at))
    while (this.moment > to) {
      const change = changes[--this.moment]
      if (change) this.show(change, change.before)
    }
    while (this.moment < to) {
      const change = changes[this.moment++]
      if (change) this.show(change, change.after)
    }
    if (to < changes.length) return
    for (const { x, y, z, block } of this.places.values()) this.write(x, y, z, block)
    this.places.clear()
  }

  /** Shows the world as it is, from now on. */
  end(): void {
    this.seek(this.changes.length)
    this.world.hold = null
  }

  /** Must be called when a chunk was put into the world, as it is now. */
  chunkChanged(chunk: Pick<Chunk, 'x' | 'z'>): void {
    for (const place of this.places.values()) {
      const { x, y, z, shown } = place
      if (chunkOf(x) !== chunk.x || chunkOf(z) !== chunk.z) continue
      place.block = this.world.get(x, y, z)
      this.write(x, y, z, shown)
    }
  }

  /** Keeps a change that comes while the past is shown. */
  private keep(x: number, y: number, z: number, block: number): boolean {
    if (this.writing || this.moment === this.changes.length || !this.inside(x, z)) return false
    this.placeAt(x, y, z).block = block
    return true
  }

  private placeAt(x: number, y: number, z: number): Place {
    const key = blockKey(x, y, z)
    let place = this.places.get(key)
    if (!place) {
      const block = this.world.get(x, y, z)
      place = { x, y, z, block, shown: block }
      this.places.set(key, place)
    }
    return place
  }

  private show({ x, y, z }: PastChange, block: number): void {
    this.placeAt(x, y, z).shown = block
    this.write(x, y, z, block)
  }

  private write(x: number, y: number, z: number, block: number): void {
    this.writing = true
    this.world.set(x, y, z, block)
    this.writing = false
  }
}
