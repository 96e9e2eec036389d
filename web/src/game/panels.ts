// The panels that are not redrawn every frame: the list of players while Tab is held, and the F3 panel.

import type { Hud } from '../hud/hud'
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

  constructor(
    private readonly store: Store,
    private readonly body: Body,
    private readonly avatars: Avatars,
    private readonly session: Session,
    private readonly controls: Controls,
    private readonly hud: Hud,
    private readonly debugRows: DebugRows,
  ) {}

  update({ now }: Frame): void {
    if (now - this.updatedAt <= INTERVAL_MS) return
    this.updatedAt = now
    if (this.hud.debug.open) this.hud.debug.show(this.debugRows.at(now))
    if (this.store.screen !== 'play') return
    const listed = this.controls.holdsKey('Tab')
    this.hud.players.toggle(listed)
    if (listed) this.listPlayers()
  }

  private listPlayers(): void {
    const { body } = this
    const { welcome } = this.session
    if (!welcome) return
    const self = { player: welcome.player, name: welcome.name, guest: welcome.guest, distance: null }
    const others = this.avatars.list().map((other) => ({
      ...other,
      distance: Math.hypot(other.x - body.x, other.y - body.y, other.z - body.z),
    }))
    this.hud.players.show(welcome.world_name, [self, ...others.sort((a, b) => a.distance - b.distance)])
  }
}
