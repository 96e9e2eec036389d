// Shows what a rollback would change, as soon as the player is not in another panel, and orders it if they agree.

import type { Hud } from '../hud/hud'
import { RollbackDialog } from '../hud/rollback-dialog'
import { surfaceOf } from '../net/endpoints'
import type { RollbackPreview } from '../net/protocol'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { World } from '../world/world'
import type { Frame, System } from './frame-loop'
import type { Screens } from './screens'
import type { Store } from './store'

const INTERVAL_MS = 200

/** Returns the control with its dialog. */
export function createRollback(
  store: Store,
  world: World,
  body: Body,
  session: Session,
  screens: Screens,
  hud: Hud,
): RollbackControl {
  const dialog = new RollbackDialog(
    () => control.confirm(),
    () => control.cancel(),
  )
  hud.addDialog('rollback', dialog)
  const control = new RollbackControl(store, world, body, session, screens, dialog)
  return control
}

export class RollbackControl implements System {
  private preview: RollbackPreview | null = null
  private drawnAt = 0 // ms

  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Session,
    private readonly screens: Screens,
    private readonly dialog: Pick<RollbackDialog, 'ask' | 'draw' | 'tiles'>,
  ) {}

  /** The number of tiles in the picture. */
  get tiles(): number {
    return this.dialog.tiles
  }

  propose(preview: RollbackPreview): void {
    this.preview = preview.blocks > 0 ? preview : null // the chat says that there is nothing to undo
  }

  confirm(): void {
    if (this.preview) this.session.sendCommand(this.preview.command)
    this.cancel()
  }

  /** Must be called from a click or key press. */
  cancel(): void {
    this.preview = null
    void this.screens.resume()
  }

  update({ now }: Frame): void {
    const { preview, store, dialog } = this
    if (!store.inWorld) this.preview = null
    if (!preview) return
    if (store.screen === 'play') {
      dialog.ask(preview, this.world)
      this.screens.show('rollback')
      this.drawnAt = 0
    }
    if (store.screen !== 'rollback' || now - this.drawnAt < INTERVAL_MS) return
    this.drawnAt = now
    dialog.draw(surfaceOf(this.session.connection.url), this.body, now)
  }
}
