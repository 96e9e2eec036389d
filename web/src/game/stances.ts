// Stances: sends what the player holds and whether they sneak, and shows the blocks that others hold. Loaded after joining.

import type { Stance, Welcome } from '../net/protocol'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { Avatars } from '../render/avatars'
import { HeldBlocks } from '../render/held-blocks'
import type { View } from '../render/view'
import { AIR } from '../world/blocks'
import type { Frame, System } from './frame-loop'
import type { Store } from './store'

/** From one stance to the next, at least: a gateway shows others four a second. */
const STANCE_MS = 250
const FIRST: Stance = { held: AIR, sneaks: false }

export class Stances implements System {
  readonly held: HeldBlocks
  private sent = FIRST
  private sentAt = 0 // ms
  private sentTo: Welcome | null = null

  constructor(
    private readonly store: Pick<Store, 'selectedBlock'>,
    private readonly body: Pick<Body, 'sneaks'>,
    private readonly session: Pick<Session, 'welcome'> & { connection: Pick<Session['connection'], 'open' | 'send'> },
    avatars: Pick<Avatars, 'held'>,
    view: Pick<View, 'context' | 'terrain' | 'add'>,
  ) {
    this.held = avatars.held = new HeldBlocks(view.context, view.terrain.tiles)
    view.add(this.held.meshes)
  }

  update({ now }: Pick<Frame, 'now'>): void {
    const { welcome, connection } = this.session
    if (!welcome?.stances || !connection.open) return
    if (welcome !== this.sentTo) this.sent = FIRST
    this.sentTo = welcome
    const stance = { held: this.store.selectedBlock, sneaks: this.body.sneaks }
    if ((stance.held === this.sent.held && stance.sneaks === this.sent.sneaks) || now - this.sentAt < STANCE_MS) return
    this.sent = stance
    this.sentAt = now
    connection.send({ type: 'stance', ...stance })
  }
}
