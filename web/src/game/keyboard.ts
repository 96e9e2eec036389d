// Every key that is pressed comes here first: which screen is open decides who gets it. A button of the mouse closes here the panel that
// it has opened; the wheel does not, because it scrolls in panels.

import type { Hud, Screen } from '../hud/hud'
import type { Controls } from '../input/controls'
import type { InputSwitch } from '../input/kind'
import { LEFT } from '../player/block-interaction'
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

export interface KeyboardOptions {
  store: Pick<Store, 'screen' | 'settings'>
  input: Pick<InputSwitch, 'key'>
  controls: Pick<Controls, 'keyDown' | 'keyUp'>
  hud: Pick<Hud, 'key'>
  screens: Pick<Screens, 'resume'>
}

/** Listens to the keyboard of the page. */
export function listenToKeys({ store, input, controls, hud, screens }: KeyboardOptions): void {
  const closes = (code: string) => {
    const action = actionOf(store.settings.bindings, code)
    if (action === null || action !== CLOSED_BY[store.screen]) return false
    void screens.resume()
    return true
  }
  const takes = (event: KeyboardEvent) => {
    if (hud.key(event)) return true
    if (isTyped(event)) return false
    if (store.screen === 'play') return controls.keyDown(event)
    return !event.repeat && closes(codeOf(event))
  }
  window.addEventListener('keydown', (event) => {
    input.key(event)
    if (takes(event)) event.preventDefault()
  })
  window.addEventListener('keyup', (event) => controls.keyUp(event.code))
  const pressed = (event: MouseEvent) => {
    if (event.button !== LEFT && closes(`Mouse${event.button}`)) event.preventDefault() // the left one clicks in the panel
  }
  window.addEventListener('mousedown', pressed, true) // before the world: what opens a panel there does not close it here
}

/** Reports whether a key types into a field. */
function isTyped({ target }: Event): boolean {
  const { tagName, type } = target as Partial<HTMLInputElement>
  return tagName === 'TEXTAREA' || (tagName === 'INPUT' && /^(text|password)$/.test(type ?? ''))
}
