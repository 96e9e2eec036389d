// Signs: shows the texts of those that are near, and lets the player write on one.

import type { Hud } from '../hud/hud'
import { SignDialog, SignLine } from '../hud/sign-dialog'
import type { Session } from '../net/session'
import type { BlockInteraction } from '../player/block-interaction'
import type { Body } from '../player/body'
import { REACH, SignTexts, type ShownSign } from '../render/sign-texts'
import type { View } from '../render/view'
import { SIGN, WALL_SIGN } from '../world/block-table'
import { isSign, kindOf } from '../world/blocks'
import type { World } from '../world/world'
import type { Frame, System } from './frame-loop'
import type { Screens } from './screens'
import type { Store } from './store'

const INTERVAL_MS = 150

/** Returns the control with its dialog. */
export function createSigns(
  store: Store,
  world: World,
  body: Body,
  session: Session,
  interaction: Pick<BlockInteraction, 'aim'>,
  screens: Screens,
  hud: Hud,
  view: View,
): SignControl {
  const dialog = new SignDialog(
    (text) => control.write(text),
    () => control.close(),
  )
  hud.addDialog('sign', dialog)
  const line = new SignLine()
  hud.addInWorld(line.root)
  const control = new SignControl(store, world, body, session, interaction, screens, dialog, line, view)
  return control
}

export class SignControl implements System {
  private readonly texts = new SignTexts()
  private writing: { x: number; y: number; z: number } | null = null
  private updatedAt = 0 // ms

  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Session,
    private readonly interaction: Pick<BlockInteraction, 'aim'>,
    private readonly screens: Screens,
    private readonly dialog: Pick<SignDialog, 'fill' | 'showGone'>,
    private readonly line: Pick<SignLine, 'show'>,
    view: View,
  ) {
    view.add(this.texts.meshes)
  }

  /** The number of texts that are drawn. */
  get count(): number {
    return this.texts.count
  }

  /** Opens the dialog for a sign. */
  open(x: number, y: number, z: number): void {
    if (this.store.screen !== 'play') return
    this.writing = { x, y, z }
    this.dialog.fill(this.textAt(x, y, z))
    this.screens.show('sign')
  }

  /** Writes on the sign, and closes the dialog; if the sign is gone, the dialog says so and keeps the text. Must be called from a click or key press. */
  write(text: string): void {
    if (!this.writing) return
    const { x, y, z } = this.writing
    const block = this.world.get(x, y, z)
    const written =
      text === this.textAt(x, y, z) || (isSign(block) && this.session.edit(x, y, z, block, performance.now(), text))
    if (written) this.close()
    else this.dialog.showGone()
  }

  /** Must be called from a click or key press. */
  close(): void {
    this.writing = null
    void this.screens.resume()
  }

  update({ now }: Frame): void {
    if (now - this.updatedAt < INTERVAL_MS) return
    this.updatedAt = now
    const { session, body } = this
    const { aim } = this.interaction
    const playing = this.store.screen === 'play'
    this.line.show(playing && aim ? this.textAt(aim.x, aim.y, aim.z) : '')
    const signs = this.store.inWorld
      ? session.signs.near(body.x, body.y, body.z, REACH).flatMap((sign) => this.shown(sign))
      : []
    this.texts.show(signs, body.x, body.y, body.z)
  }

  /** Returns the text of the sign at a place, or the one that the player has just written there. */
  private textAt(x: number, y: number, z: number): string {
    const pending = this.session.edits.waiting.findLast((edit) => edit.x === x && edit.y === y && edit.z === z)
    return pending?.text ?? this.session.signs.textAt(x, y, z)
  }

  /** Returns how a sign is shown; nothing if its block is another one here. */
  private shown({ x, y, z, text }: { x: number; y: number; z: number; text: string }): ShownSign[] {
    const block = this.world.get(x, y, z)
    if (!isSign(block)) return []
    const { shape } = kindOf(block)
    const onWall = shape >= WALL_SIGN
    return [{ x, y, z, text, onWall, direction: shape - (onWall ? WALL_SIGN : SIGN) }]
  }
}
