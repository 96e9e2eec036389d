// The panels that are not redrawn every frame: the list of players while Tab is held, and the F3 panel. It also opens the map.

import type { Hud } from '../hud/hud'
import type { Listed } from '../hud/players'
import type { Controls } from '../input/controls'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { Avatars } from '../render/avatars'
import { texts } from '../text/texts'
import type { DebugRows } from './debug-rows'
import type { Frame, System } from './frame-loop'
import type { MapControl } from './map-control'
import type { Screens } from './screens'
import type { Store } from './store'

const INTERVAL_MS = 200

export class Panels implements System {
  private updatedAt = 0 // ms
  private debugRows: DebugRows | null = null // loaded with F3
  /** Null until it is opened first. */
  map: MapControl | null = null

  constructor(
    private readonly store: Store,
    private readonly body: Body,
    private readonly avatars: Avatars,
    private readonly session: Session,
    private readonly controls: Controls,
    private readonly hud: Hud,
    private readonly screens: Screens,
    private readonly loadDebugRows: () => Promise<DebugRows>,
    private readonly loadMap: () => Promise<MapControl>,
  ) {}

  update({ now }: Frame): void {
    if (now - this.updatedAt <= INTERVAL_MS) return
    this.updatedAt = now
    if (this.hud.debug.open && this.debugRows) this.hud.debug.show(this.debugRows.at(now))
    if (this.store.screen === 'map') this.map?.update(now)
    if (this.store.screen !== 'play') return
    const list = this.controls.performs('players')
    this.hud.players.toggle(list)
    if (!list) return
    this.session.surroundings.look({ people: true }, now)
    this.listPlayers()
  }

  async toggleDebug(): Promise<void> {
    this.debugRows ??= await this.loadDebugRows()
    this.hud.debug.toggle()
  }

  async openMap(): Promise<void> {
    if (!this.session.surroundings.supported) {
      this.hud.messages.toast(texts.noMap)
      return
    }
    if (!this.map) {
      const loaded = await this.loadMap().catch(() => null)
      if (!loaded) {
        this.hud.messages.toast(texts.mapMissing)
        return
      }
      this.map ??= loaded
      this.hud.addDialog('map', this.map.panel)
    }
    if (this.store.screen === 'play') this.screens.show('map')
  }

  /** Returns the other players, those in view where they are now. */
  others(): {
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
    const rows: Listed[] = [self, ...others.sort((a, b) => a.distance - b.distance)]
    const near = new Set(rows.map(({ name }) => name))
    for (const name of surroundings.people?.names ?? [])
      if (!near.has(name)) rows.push({ player: '', name, guest: false, distance: null, inView: false })
    const count = Math.max(rows.length, surroundings.people?.players ?? 0)
    this.hud.players.show(welcome.world_name, rows, count, complete)
  }
}
