// Hits and gifts between players.

import type { Hud } from '../hud/hud'
import type { GiftEvent, HitEvent } from '../net/protocol'
import type { Session } from '../net/session'
import type { BlockInteraction } from '../player/block-interaction'
import type { Body } from '../player/body'
import type { Avatars } from '../render/avatars'
import type { Hand } from '../render/hand'
import { kindOf } from '../world/blocks'
import type { HotbarControl } from './hotbar-control'
import type { Store } from './store'

const MANY = 10 // blocks given at once with Shift

export class PlayerInteraction {
  /** The number of hits by other players. */
  hitsTaken = 0

  constructor(
    private readonly store: Store,
    private readonly body: Body,
    private readonly avatars: Avatars,
    private readonly session: Session,
    private readonly interaction: BlockInteraction,
    private readonly hotbar: HotbarControl,
    private readonly hand: Hand,
    private readonly hud: Hud,
  ) {}

  /** Gives the selected block to the player aimed at. */
  give(many: boolean): void {
    this.interaction.updateAim()
    const { target } = this.interaction
    if (!target) {
      this.hud.messages.toast('Look at a player to give them the block you’re holding.')
      return
    }
    this.hand.swing()
    this.session.sendGift(target.player, this.store.selectedBlock, many ? MANY : 1)
  }

  showHit(event: HitEvent): void {
    this.avatars.animateInteraction(event.player, event.to, true)
    this.addChatLine(event, ' hit ')
    if (!this.isSelf(event.to)) return
    const { x, z } = this.avatars.shownAt(event.player) ?? this.body
    this.body.knockBack(x, z)
    this.hud.flashHit()
    this.hitsTaken++
  }

  showGift(event: GiftEvent): void {
    this.avatars.animateInteraction(event.player, event.to, false)
    this.addChatLine(event, ' gave ', ` ${event.count} × ${kindOf(event.block).name}`)
    if (!this.isSelf(event.to)) return
    this.hotbar.receive(event.block, event.count)
  }

  private addChatLine({ player, name, to, to_name }: HitEvent | GiftEvent, verb: string, end = ''): void {
    const target = { player: to, name: this.isSelf(to) ? 'you' : to_name }
    this.hud.chat.addInteraction({ player, name }, verb, target, end)
  }

  private isSelf(player: string): boolean {
    return player === this.session.welcome?.player
  }
}
