// Wires a gamepad to the game: in the world it acts like keys and mouse, in a panel it moves the focus.

import { adjustFocused, focusTowards, moveFocus } from '../hud/focus'
import type { Controls } from '../input/controls'
import { GamepadInput } from '../input/gamepad'
import type { InputSwitch } from '../input/kind'
import type { System } from './frame-loop'
import type { Screens } from './screens'
import type { Store } from './store'

/** Returns the dialogs that are open, the uppermost last. */
function openDialogs(): HTMLDialogElement[] {
  return [...document.querySelectorAll<HTMLDialogElement>('dialog[open]')]
}

/** Returns a system that reads the first gamepad with the standard mapping. */
export function createGamepad(store: Store, input: InputSwitch, controls: Controls, screens: Screens): System {
  const gamepad = new GamepadInput(controls, {
    used: () => input.use('gamepad'),
    resumed: () => {
      const dialogs = openDialogs()
      if (dialogs.length > 1 || !store.inWorld) dialogs.at(-1)?.close()
      else void screens.resume()
    },
    focused: (steps) => moveFocus(openDialogs().at(-1) ?? document, steps),
    adjusted: adjustFocused,
    pointed: focusTowards,
    chosen: () => {
      if (document.activeElement instanceof HTMLElement) document.activeElement.click()
    },
  })
  return {
    update({ now, dt }) {
      const pad = navigator.getGamepads().find((pad) => pad?.mapping === 'standard')
      if (pad) gamepad.update(pad, store.screen === 'play', now, dt)
    },
  }
}
