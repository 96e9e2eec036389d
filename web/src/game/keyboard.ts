// Every key that is pressed comes here first: which screen is open decides who gets it.

import type { Hud, Screen } from '../hud/hud'
import type { Controls } from '../input/controls'
import type { InputSwitch } from '../input/kind'
import { actionOf, codeOf, type Action } from '../settings/bindings'
import type { Screens } from './screens'
import type { Store } from './store'

/** The screens that the key of an action closes, which is mostly the one that has opened them. */
const CLOSED_BY: Partial<Record<Screen, Action>> = {
  blocks: 'blocks',
  build: 'build',
  map: 'map',
  past: 'past',
  radial: 'radial',
}

export interface KeyboardParts {
  store: Pick<Store, 'screen' | 'settings'>
  input: Pick<InputSwitch, 'key'>
  controls: Pick<Controls, 'keyDown' | 'keyUp'>
  hud: Pick<Hud, 'key'>
  screens: Pick<Screens, 'resume'>
}

/** Listens to the keyboard of the page. */
export function listenToKeys({ store, input, controls, hud, screens }: KeyboardParts): void {
  const takes = (event: KeyboardEvent) => {
    if (hud.key(event)) return true
    if (isTyped(event)) return false
    if (store.screen === 'play') return controls.keyDown(event)
    if (event.repeat || actionOf(store.settings.bindings, codeOf(event)) !== CLOSED_BY[store.screen]) return false
    void screens.resume()
    return true
  }
  window.addEventListener('keydown', (event) => {
    input.key(event)
    if (takes(event)) event.preventDefault()
  })
  window.addEventListener('keyup', (event) => controls.keyUp(event.code))
}

/** Reports whether a key types into a field. */
function isTyped({ target }: Event): boolean {
  const { tagName, type } = target as Partial<HTMLInputElement>
  return tagName === 'TEXTAREA' || (tagName === 'INPUT' && /^(text|password)$/.test(type ?? ''))
}
