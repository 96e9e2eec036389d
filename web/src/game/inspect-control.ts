// The tool that shows who changed a block: while it is on, clicks ask instead of changing blocks. The answers are lines of the chat.

import { textForInput } from '../hud/help'
import type { Hud } from '../hud/hud'
import type { Session } from '../net/session'
import { LEFT, MIDDLE, RIGHT, type BlockInteraction } from '../player/block-interaction'
import { laterTexts } from '../text/later-texts'
import type { System } from './frame-loop'
import type { Store } from './store'

/** The time between two questions, in milliseconds: the server takes one command a second. */
const INTERVAL_MS = 1000

export class InspectControl implements System {
  private active = false
  private askedAt = -Infinity

  constructor(
    private readonly store: Pick<Store, 'inWorld' | 'settings'>,
    private readonly session: Pick<Session, 'sendCommand'>,
    private readonly interaction: Pick<BlockInteraction, 'aim' | 'updateAim'>,
    private readonly hud: { claimLine: Pick<Hud['claimLine'], 'setHint'>; messages: Pick<Hud['messages'], 'toast'> },
  ) {}

  get on(): boolean {
    return this.active
  }

  toggle(): void {
    if (this.active) this.stop()
    else {
      this.active = true
      const { title, note } = laterTexts.inspect
      this.hud.claimLine.setHint(title, textForInput(note, this.store.settings.bindings))
    }
  }

  stop(): void {
    if (!this.active) return
    this.active = false
    this.hud.claimLine.setHint(null)
  }

  /** Handles a click while the tool is on; returns false if it is not, or if the click changes nothing. */
  click(button: number, now: number): boolean {
    if (!this.active || button === MIDDLE) return false
    if (button === LEFT || button === RIGHT) this.ask(button === RIGHT, now)
    return true
  }

  update(): void {
    if (!this.store.inWorld) this.stop()
  }

  private ask(inFront: boolean, now: number): void {
    this.interaction.updateAim()
    const { aim } = this.interaction
    if (!aim) {
      this.hud.messages.toast(laterTexts.aimAtBlock)
      return
    }
    if (now - this.askedAt < INTERVAL_MS) {
      this.hud.messages.toast(laterTexts.inspect.tooFast)
      return
    }
    this.askedAt = now
    const { x, y, z, normal } = aim
    const at = inFront ? [x + normal[0], y + normal[1], z + normal[2]] : [x, y, z]
    this.session.sendCommand(`inspect ${at.join()}`)
  }
}
