// The map, loaded when it is opened first: shows it what the session knows, and does what the player chooses there.

import { WorldMap } from '../hud/map'
import { Bookmarks } from '../map/bookmarks'
import { LoadedLand } from '../map/loaded-land'
import type { Marked } from '../map/marks'
import { surfaceOf } from '../net/endpoints'
import { placeLink, sharedPage } from '../net/place-link'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import { storage } from '../settings/storage'
import { chunkOf } from '../world/coords'
import type { World } from '../world/world'
import type { Screens } from './screens'

export class MapControl {
  readonly panel: WorldMap
  private readonly loaded: LoadedLand
  private bookmarks = new Bookmarks(storage, '')
  private world = ''

  constructor(
    world: World,
    body: Body,
    private readonly session: Session,
    screens: Screens,
    players: () => readonly Marked[],
  ) {
    this.loaded = new LoadedLand(world)
    world.listen({
      chunkChanged: ({ x, z }) => this.loaded.forget(x, z),
      chunkRemoved: ({ x, z }) => this.loaded.forget(x, z),
      blockChanged: (x, _, z) => this.loaded.forget(chunkOf(x), chunkOf(z)),
    })
    this.panel = new WorldMap({
      scene: () => ({
        base: surfaceOf(session.connection.url),
        loaded: this.loaded,
        self: body,
        players: players(),
        claims: session.claims.list,
      }),
      bookmarks: () => this.bookmarksHere(),
      gateway: () => session.welcome?.gateway ?? '',
      heightAt: (x, z) => this.loaded.heightAt(x, z) ?? this.panel.map.land.heightAt(x, z),
      link: (place) => placeLink(sharedPage(location.href, session.advertised).page, place),
      go: ({ x, y, z }) => {
        session.sendCommand(`${session.mayUse('tp') ? 'tp' : 'visit'} ${x} ${y} ${z}`)
        void screens.resume()
      },
      travel: (command) => {
        session.sendCommand(command)
        void screens.resume()
      },
      mayUse: (command) => session.mayUse(command),
      mayGo: () => session.mayUse('tp') || (session.mayUse('visit') && !session.visited),
      close: () => void screens.resume(),
    })
  }

  /** Called some times a second while the map is open. */
  update(now: number): void {
    this.session.surroundings.look({ people: false }, now)
    this.panel.update(now)
  }

  private bookmarksHere(): Bookmarks {
    const world = this.session.welcome?.world ?? ''
    if (world !== this.world) this.bookmarks = new Bookmarks(storage, (this.world = world))
    return this.bookmarks
  }
}
