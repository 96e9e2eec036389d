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
    this.root.addEventListener('keyup', ({ code }) => {
      if (/^(Control|Shift)/.test(code)) this.bind(code) // no other key has followed
    })
    this.root.addEventListener('mousedown', (event) => {
      if (this.isOnWaiting(event)) this.bind(`Mouse${event.button}`)
    })
    this.root.addEventListener('wheel', (event) => {
      if (this.isOnWaiting(event)) this.bind(event.deltaY < 0 ? 'WheelUp' : 'WheelDown')
    })
    this.root.addEventListener('contextmenu', (event) => event.preventDefault())
    this.root.addEventListener('focusout', () => {
      if (this.waiting) this.wait(null)
    })
    this.show()
  }

  /** Takes the key that is waited for; returns false if none is. */
  key(event: KeyboardEvent): boolean {
    if (!this.waiting) return false
    const { code, repeat } = event
    if (/^Alt/.test(code))
      this.wait(null, this.waiting) // it is the system's, and AltGr is Control and Alt on Windows
    else if (!/^(Control|Shift|Meta)/.test(code) && !repeat) this.bind(codeOf(event)) // else another key may follow
    return true
  }

  /** Gives a key to the action that waits for one. */
  private bind(code: string): void {
    const { waiting } = this
    if (!waiting) return
    if (code !== 'Escape' && code !== '') {
      this.settings.bindings = rebind(this.settings.bindings, waiting, code)
      this.changed()
    }
    this.wait(null, waiting)
  }

  /** Reports whether the mouse is on the button that waits; then it does nothing else. */
  private isOnWaiting(event: MouseEvent): boolean {
    const waits = (event.target as HTMLElement).dataset.action === this.waiting
    if (waits) event.preventDefault()
    return waits
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
