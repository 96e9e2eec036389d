// Shows the land beyond the chunks that are loaded. Its code and its tiles are loaded once the near land is there.

import type { Horizon } from '../horizon/horizon'
import type { MeshScheduler, MeshSink } from '../mesh/scheduler'
import { surfaceOf } from '../net/endpoints'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { View } from '../render/view'
import { chunkKey } from '../world/coords'
import type { Frame, System } from './frame-loop'
import type { Store } from './store'

const NEAR_LAND = 9 // chunks

/** The state for the end-to-end tests. */
export interface HorizonState {
  /** The number of tiles wanted, and of those that are there. */
  wanted: number
  there: number
  /** How far it is shown, in blocks. */
  reach: number
  /** What is built on it: the number of rows of squares, and the height of the highest. */
  built: number
  highest: number
  /** What was drawn of it in the last frame. */
  calls: number
  triangles: number
}

/** Passes meshes on, and knows which chunks have some. */
export class ShownChunks implements MeshSink {
  readonly chunks = new Map<number, { x: number; z: number }>()
  changed: ((x: number, z: number, shown: boolean) => void) | null = null

  constructor(private readonly sink: MeshSink) {}

  show(...[x, z, ...rest]: Parameters<MeshSink['show']>): void {
    this.sink.show(x, z, ...rest)
    const key = chunkKey(x, z)
    if (this.chunks.has(key)) return
    this.chunks.set(key, { x, z })
    this.changed?.(x, z, true)
  }

  remove(x: number, z: number): void {
    this.sink.remove(x, z)
    if (this.chunks.delete(chunkKey(x, z))) this.changed?.(x, z, false)
  }
}

export class HorizonControl implements System {
  horizon: Horizon | null = null
  private world = ''
  private loading = false

  constructor(
    private readonly store: Store,
    private readonly body: Body,
    private readonly session: Session,
    private readonly meshes: MeshScheduler,
    private readonly shown: ShownChunks,
    private readonly view: View,
  ) {}

  update({ now, dt }: Frame): void {
    const { welcome } = this.session
    const on = this.store.settings.horizon && this.store.inWorld && welcome?.map === true
    if (this.horizon && (!on || welcome.world !== this.world)) this.end()
    if (on && !this.horizon && !this.loading && this.meshes.meshed >= NEAR_LAND && this.meshes.backlog === 0)
      void this.begin(welcome.world)
    if (!this.horizon) return
    const { x, z } = this.body
    this.horizon.update({ x, z, base: surfaceOf(this.session.connection.url) }, now, dt)
    this.view.setReach(this.horizon.reach)
  }

  get state(): HorizonState {
    const { horizon } = this
    if (!horizon) return { wanted: 0, there: 0, reach: 0, built: 0, highest: 0, calls: 0, triangles: 0 }
    return { ...horizon.progress, ...horizon.buildings, ...horizon.drawn, reach: horizon.reach }
  }

  private async begin(world: string): Promise<void> {
    this.loading = true
    try {
      const { Horizon } = await import('../horizon/horizon')
      const horizon = new Horizon()
      this.view.add(horizon.meshes)
      for (const { x, z } of this.shown.chunks.values()) horizon.mask.add(x, z)
      this.shown.changed = (x, z, shown) => (shown ? horizon.mask.add(x, z) : horizon.mask.remove(x, z))
      this.world = world
      this.horizon = horizon
      this.loading = false
    } catch (reason) {
      console.warn('The horizon cannot be loaded:', reason) // it is not tried again: the node may have another version now
    }
  }

  private end(): void {
    if (!this.horizon) return
    this.shown.changed = null
    this.view.remove(this.horizon.meshes)
    this.horizon.dispose()
    this.horizon = null
    this.view.setReach(0)
  }
}
