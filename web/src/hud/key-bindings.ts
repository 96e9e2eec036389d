// The list of actions and their keys, in the menu. A click on a key waits for the one that takes its place.

import { ACTIONS, DEFAULTS, codeOf, rebind, type Action } from '../settings/bindings'
import type { Settings } from '../settings/settings'
import { laterTexts } from '../text/later-texts'
import { texts } from '../text/texts'
import { button, el } from './dom'
import './key-bindings.css'

export class KeyBindings {
  readonly root = el('div', 'bindings')
  private waiting: Action | null = null

  constructor(
    private readonly settings: Settings,
    private readonly changed: () => void,
  ) {
    this.root.addEventListener('focusout', () => {
      if (this.waiting) this.wait(null)
    })
    this.show()
  }

  /** Takes the key that is waited for; returns false if none is. */
  key(event: KeyboardEvent): boolean {
    const { waiting } = this
    if (!waiting) return false
    if (/^(Control|Meta)/.test(event.code)) return true // another key follows
    if (event.code !== 'Escape' && event.code !== '') {
      this.settings.bindings = rebind(this.settings.bindings, waiting, codeOf(event))
      this.changed()
    }
    this.wait(null, waiting)
    return true
  }

  private wait(action: Action | null, focused: Action | null = action): void {
    this.waiting = null // replacing the buttons takes the focus from one
    this.show(action)
    this.waiting = action
    if (focused) this.root.querySelector<HTMLElement>(`[data-action=${focused}]`)?.focus()
  }

  private show(waiting: Action | null = null): void {
    const rows = ACTIONS.filter((action) => action !== 'menu').map((action) => {
      const keys = this.settings.bindings[action].map(texts.key).join(', ') || laterTexts.noKeys
      const key = button(action === waiting ? laterTexts.pressKey : keys, 'quiet', () => this.wait(action))
      key.dataset.action = action
      key.setAttribute('aria-label', `${laterTexts.actions[action]}: ${key.textContent}`)
      return el('div', 'row', el('span', '', laterTexts.actions[action]), key)
    })
    const reset = button(laterTexts.resetKeys, 'quiet', () => {
      this.settings.bindings = { ...DEFAULTS }
      this.changed()
      this.show()
      this.root.querySelector<HTMLElement>('button:last-of-type')?.focus()
    })
    this.root.replaceChildren(...rows, reset)
  }
}
