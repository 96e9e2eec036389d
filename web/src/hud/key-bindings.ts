// The list of actions and their keys, in the menu. A click on a key waits for the one that takes its place.

import { ACTIONS, DEFAULTS, codeOf, keyName, rebind, type Action } from '../settings/bindings'
import type { Settings } from '../settings/settings'
import { button, el } from './dom'
import './key-bindings.css'

const LABELS: Record<Action, string> = {
  forward: 'Forward',
  left: 'Left',
  back: 'Back',
  right: 'Right',
  jump: 'Jump, fly up',
  sink: 'Sneak, fly down',
  run: 'Run',
  fly: 'Fly',
  break: 'Break',
  place: 'Place',
  pick: 'Take the block you look at',
  lookUp: 'Look up',
  lookDown: 'Look down',
  lookLeft: 'Look left',
  lookRight: 'Look right',
  blocks: 'Blocks',
  chat: 'Chat',
  command: 'Command',
  build: 'Building tools',
  undo: 'Undo',
  redo: 'Redo',
  give: 'Give a block',
  map: 'Map',
  players: 'Players',
  claims: 'Claims from afar',
  inspect: 'Who changed a block',
  camera: 'Change the camera',
  wave: 'Wave',
  mute: 'Sounds on or off',
  hints: 'First steps',
  debug: 'Figures',
  menu: 'Menu',
}

export class KeyBindings {
  readonly root = el('div', 'bindings')
  private waiting: Action | null = null

  constructor(
    private readonly settings: Settings,
    private readonly changed: () => void,
  ) {
    this.root.addEventListener('keydown', (event) => this.take(event))
    this.root.addEventListener('focusout', () => {
      if (this.waiting) this.wait(null)
    })
    this.show()
  }

  private take(event: KeyboardEvent): void {
    const { waiting } = this
    if (!waiting) return
    event.preventDefault()
    event.stopPropagation()
    if (/^(Control|Meta)/.test(event.code)) return // another key follows
    if (event.code !== 'Escape' && event.code !== '') {
      this.settings.bindings = rebind(this.settings.bindings, waiting, codeOf(event))
      this.changed()
    }
    this.wait(null, waiting)
  }

  private wait(action: Action | null, focused: Action | null = action): void {
    this.waiting = null // replacing the buttons takes the focus from one
    this.show(action)
    this.waiting = action
    if (focused) this.root.querySelector<HTMLElement>(`[data-action=${focused}]`)?.focus()
  }

  private show(waiting: Action | null = null): void {
    const rows = ACTIONS.filter((action) => action !== 'menu').map((action) => {
      const keys = this.settings.bindings[action].map(keyName).join(', ') || 'none'
      const key = button(action === waiting ? 'Press a key' : keys, 'quiet', () => this.wait(action))
      key.dataset.action = action
      key.setAttribute('aria-label', `${LABELS[action]}: ${key.textContent}`)
      return el('div', 'row', el('span', '', LABELS[action]), key)
    })
    const reset = button('Reset the keys', 'quiet', () => {
      this.settings.bindings = { ...DEFAULTS }
      this.changed()
      this.show()
      this.root.querySelector<HTMLElement>('button:last-of-type')?.focus()
    })
    this.root.replaceChildren(...rows, reset)
  }
}
