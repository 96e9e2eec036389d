// The parts of the game whose code is loaded when they are used first, or once the player has joined.

import type { Hud } from '../hud/hud'
import type { Session } from '../net/session'
import type { BlockInteraction } from '../player/block-interaction'
import type { Body } from '../player/body'
import type { Avatars } from '../render/avatars'
import type { View } from '../render/view'
import type { World } from '../world/world'
import type { System } from './frame-loop'
import type { HotbarControl } from './hotbar-control'
import { Lazy, LazySystem } from './lazy'
import type { Screens } from './screens'
import type { Store } from './store'

/** What the parts of the game are made of. */
export interface Core {
  store: Store
  world: World
  body: Body
  avatars: Avatars
  session: Session
  interaction: BlockInteraction
  hotbar: HotbarControl
  screens: Screens
  hud: Hud
  hudRoot: HTMLElement
  view: View
  /** Turns the camera as the mouse does, by so many pixels. */
  turn: (x: number, y: number) => void
  /** A part could not be loaded. */
  partMissing: () => void
}

export type Parts = ReturnType<typeof createParts>

export function createParts(core: Core) {
  const { store, world, body, avatars, session, interaction, hotbar, screens, hud, view, partMissing } = core
  const lazy = <T extends System>(load: () => Promise<T>) => new LazySystem(load, partMissing)
  const claims = lazy(() =>
    import('./claim-control').then(
      ({ ClaimControl }) =>
        new ClaimControl(store, world, body, session, hud, () => view.loadClaimWalls(), interaction),
    ),
  )
  const inspect = lazy(() =>
    import('./inspect-control').then(({ InspectControl }) => new InspectControl(store, session, interaction, hud)),
  )
  return {
    claims,
    inspect,
    chat: new Lazy(
      () =>
        import('./chat-control').then(
          ({ ChatControl }) => new ChatControl(hud.chat, store.settings, () => session.welcome?.name ?? ''),
        ),
      partMissing,
    ),
    help: new Lazy(
      () =>
        import('../hud/command-list').then(({ CommandList }) => {
          const list = new CommandList({
            close: () => void screens.resume(),
            write: (text) => screens.show('chat', text),
          })
          hud.addDialog('help', list)
          return list
        }),
      partMissing,
    ),
    players: new Lazy(
      () =>
        import('./player-interaction').then(
          ({ PlayerInteraction }) =>
            new PlayerInteraction(store, body, avatars, session, interaction, hotbar, view.hand, hud),
        ),
      partMissing,
    ),
    rollback: lazy(() =>
      import('./rollback-control').then(({ createRollback }) =>
        createRollback(store, world, body, session, screens, hud),
      ),
    ),
    past: lazy(() =>
      import('./past-control').then(({ createPast }) =>
        createPast(store, world, body, session, screens, hud, avatars, (x, y) => core.turn(x, y)),
      ),
    ),
    signs: lazy(() =>
      import('./sign-control').then(({ createSigns }) =>
        createSigns(store, world, body, session, interaction, screens, hud, view),
      ),
    ),
    stances: lazy(() => import('./stances').then(({ Stances }) => new Stances(store, body, session, avatars, view))),
    build: lazy(() =>
      import('./build-control').then(
        ({ BuildControl }) =>
          new BuildControl(store, world, body, session, avatars, interaction, screens, hud, view, () => {
            claims.part?.end()
            inspect.part?.stop()
          }),
      ),
    ),
    thirdPerson: lazy(() =>
      import('./third-person').then(
        ({ ThirdPerson }) => new ThirdPerson(store, world, body, session, avatars, view, core.hudRoot),
      ),
    ),
  }
}
