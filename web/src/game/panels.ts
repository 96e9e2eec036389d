// The panels that are not redrawn every frame: the list of players while Tab is held, the map, and the F3 panel.

import type { Hud } from '../hud/hud'
import type { WorldMap } from '../hud/map'
import type { Controls } from '../input/controls'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { Avatars } from '../render/avatars'
import type { DebugRows } from './debug-rows'
import type { Frame, System } from './frame-loop'
import type { Store } from './store'

const INTERVAL_MS = 200

export class Panels implements System {
  private updatedAt = 0 // ms
  private debugRows: DebugRows | null = null // loaded with F3

  constructor(
    private readonly store: Store,
    private readonly body: Body,
    private readonly avatars: Avatars,
    private readonly session: Session,
    private readonly controls: Controls,
    private readonly hud: Hud,
    private readonly loadDebugRows: () => Promise<DebugRows>,
  ) {}

  update({ now }: Frame): void {
    if (now - this.updatedAt <= INTERVAL_MS) return
    this.updatedAt = now
    if (this.hud.debug.open && this.debugRows) this.hud.debug.show(this.debugRows.at(now))
    if (this.store.screen !== 'play') return
    const list = this.controls.performs('players')
    const map = this.hud.map?.open ? this.hud.map : null
    this.hud.players.toggle(list)
    if (!list && !map) return
    const { x, z } = this.body
    this.session.surroundings.look({ list, map: map !== null, x, z, reach: map?.reach ?? 0 }, now)
    if (list) this.listPlayers()
    if (map) this.drawMap(map)
  }

  async toggleDebug(): Promise<void> {
    this.debugRows ??= await this.loadDebugRows()
    this.hud.debug.toggle()
  }

  toggleMap(): void {
    if (!this.session.surroundings.supported) {
      this.hud.messages.toast('This node has no map.')
      return
    }
    void this.hud.toggleMap().then(() => (this.updatedAt = 0))
  }

  /** Returns the other players, those in view where they are now. */
  private others(): {
    player: string
    name: string
    guest: boolean
    x: number
    y: number
    z: number
    inView: boolean
  }[] {
    const inView = this.avatars.list().map((other) => ({ ...other, inView: true }))
    const seen = new Set(inView.map(({ player }) => player).concat(this.session.welcome?.player ?? ''))
    const out = (this.session.surroundings.nearby?.players ?? []).filter(({ player }) => !seen.has(player))
    return [...inView, ...out.map((other) => ({ ...other, guest: other.guest === true, inView: false }))]
  }

  private listPlayers(): void {
    const { body } = this
    const { welcome, surroundings } = this.session
    if (!welcome) return
    const self = { player: welcome.player, name: welcome.name, guest: welcome.guest, distance: null, inView: true }
    const others = this.others().map((other) => ({
      ...other,
      distance: Math.hypot(other.x - body.x, other.y - body.y, other.z - body.z),
    }))
    const complete = surroundings.nearby?.complete ?? true
    this.hud.players.show(welcome.world_name, [self, ...others.sort((a, b) => a.distance - b.distance)], complete)
  }

  private drawMap(map: WorldMap): void {
    const { tiles } = this.session.surroundings
    map.show(tiles, this.body, this.others(), tiles.size === 0 ? 'Loading…' : 'M closes the map')
  }
}
