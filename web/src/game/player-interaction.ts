// Hits and gifts between players.

import { interactionLine, type ChatPart } from '../hud/chat-lines'
import type { Hud } from '../hud/hud'
import type { GiftEvent, HitEvent } from '../net/protocol'
import type { Session } from '../net/session'
import type { BlockInteraction } from '../player/block-interaction'
import type { Body } from '../player/body'
import type { Avatars } from '../render/avatars'
import type { Hand } from '../render/hand'
import { laterTexts } from '../text/later-texts'
import { texts } from '../text/texts'
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
      this.hud.messages.toast(laterTexts.lookAtPlayer)
      return
    }
    this.hand.swing()
    this.session.sendGift(target.player, this.store.selectedBlock, many ? MANY : 1)
  }

  showHit(event: HitEvent): void {
    this.avatars.animateInteraction(event.player, event.to, true)
    this.addChatLine(event, laterTexts.hit, laterTexts.hitYou)
    if (!this.isSelf(event.to)) return
    const { x, z } = this.avatars.shownAt(event.player) ?? this.body
    this.body.knockBack(x, z)
    this.hud.flashHit()
    this.hitsTaken++
  }

  showGift(event: GiftEvent): void {
    this.avatars.animateInteraction(event.player, event.to, false)
    this.addChatLine(
      event,
      laterTexts.gave,
      laterTexts.gaveYou,
      `${event.count} × ${texts.block(kindOf(event.block).name)}`,
    )
    if (!this.isSelf(event.to)) return
    this.hotbar.receive(event.block, event.count)
  }

  /** text is the line, and toYou if it is about this player; names and the gift stand for what is in braces. */
  private addChatLine(
    { player, name, to, to_name }: HitEvent | GiftEvent,
    text: string,
    toYou: string,
    gift = '',
  ): void {
    const parts: Partial<Record<string, ChatPart>> = {
      '{player}': { player, name },
      '{to}': { player: to, name: to_name },
      '{gift}': gift,
    }
    const line = (this.isSelf(to) ? toYou : text).split(/({\w+})/)
    this.hud.chat.add(interactionLine(...line.map((part) => parts[part] ?? part)))
  }

  private isSelf(player: string): boolean {
    return player === this.session.welcome?.player
  }
}
