// The blocks in the hotbar, and the selected one.

import type { Hotbar } from '../hud/hotbar'
import type { Hand } from '../render/hand'
import { SLOTS } from '../settings/settings'
import { PLACEABLE } from '../world/blocks'
import type { Store } from './store'

export class HotbarControl {
  constructor(
    private readonly store: Store,
    private readonly hotbar: Pick<Hotbar, 'show' | 'addGift'>,
    private readonly hand: Pick<Hand, 'hold'>,
  ) {}

  select(slot: number): void {
    this.store.slot = slot
    this.hotbar.show(this.store.settings.hotbar, slot)
    this.hand.hold(this.store.selectedBlock)
  }

  /** Puts a block into a slot. */
  put(slot: number, block: number): void {
    this.store.settings.hotbar[slot] = block
    this.select(this.store.slot)
  }

  /** Selects a block; if no slot has it, puts it into the selected one. */
  pick(block: number): void {
    if (!PLACEABLE.includes(block)) return
    const slot = this.store.settings.hotbar.indexOf(block)
    if (slot < 0) this.put(this.store.slot, block)
    else this.select(slot)
  }

  /** Shows received blocks; if no slot has them, puts them into the last one that is not selected. */
  receive(block: number, count: number): void {
    if (!PLACEABLE.includes(block)) return // a block that only newer clients have
    const { slot, settings } = this.store
    if (!settings.hotbar.includes(block)) {
      settings.hotbar[slot === SLOTS - 1 ? SLOTS - 2 : SLOTS - 1] = block
      this.hotbar.show(settings.hotbar, slot)
    }
    this.hotbar.addGift(block, count)
  }
}
