// The state that several systems share. Each system owns the rest of its own state.

import type { Screen } from '../hud/hud'
import { SLOTS, saveSettings, type Settings } from '../settings/settings'
import { AIR } from '../world/blocks'

export class Store {
  /** What the player sees; only Screens sets it. */
  screen: Screen = 'title'
  /** The selected slot of the hotbar; only HotbarControl sets it. */
  slot = 0

  constructor(
    readonly settings: Settings,
    private readonly storage: Pick<Storage, 'setItem'>,
  ) {}

  get inWorld(): boolean {
    return this.screen !== 'title'
  }

  get selectedBlock(): number {
    return this.settings.hotbar[this.slot] ?? AIR
  }

  /** Returns the number of a slot some steps from the selected one. */
  slotAfter(steps: number): number {
    return (this.slot + steps + SLOTS) % SLOTS
  }

  save(): void {
    saveSettings(this.storage, this.settings)
  }
}
