// Shows what a rollback would change, as soon as the player is not in another panel, and orders it if they agree.

import type { Hud } from '../hud/hud'
import { surfaceOf } from '../net/endpoints'
import type { RollbackPreview } from '../net/protocol'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { World } from '../world/world'
import type { Frame, System } from './frame-loop'
import type { Screens } from './screens'
import type { Store } from './store'

const INTERVAL_MS = 200

export class RollbackControl implements System {
  private preview: RollbackPreview | null = null
  private drawnAt = 0 // ms

  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Session,
    private readonly screens: Screens,
    private readonly hud: Hud,
  ) {}

  propose(preview: RollbackPreview): void {
    this.preview = preview.blocks > 0 ? preview : null // the chat says that there is nothing to undo
    this.hud.loadRollback()
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
    const { preview, store } = this
    const dialog = this.hud.rollback
    if (!store.inWorld) this.preview = null
    if (!preview || !dialog) return
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
