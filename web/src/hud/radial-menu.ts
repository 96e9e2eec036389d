// A circle of what has no button of its own on a touch screen or a gamepad.

import type { Action } from '../settings/bindings'
import { laterTexts } from '../text/later-texts'
import { Dialog } from './dialog'
import { button, el } from './dom'
import { strokeIcon } from './icon'
import './radial.css'

/** From the top, clockwise. */
const ICONS = {
  wave: 'M7 12V6a1.5 1.5 0 0 1 3 0v5V4a1.5 1.5 0 0 1 3 0v7V5a1.5 1.5 0 0 1 3 0v7V8a1.5 1.5 0 0 1 3 0v6c0 4-2 7-6 7-3 0-4-1-6-4l-3-4c-1-2 1-3 3-1z',
  give: 'M4 11h16v9H4zM3 7h18v4H3zM12 7v13M12 7C9 7 7 6 8 4s4 0 4 3c0-3 3-5 4-3s-1 3-4 3',
  redo: 'M15 14l5-5-5-5M20 9H10a6 6 0 0 0 0 12h3',
  undo: 'M9 14L4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3',
  past: 'M12 4a8 8 0 1 1-8 8M4 6v6h6M12 8v4l3 2',
  claims: 'M5 21V4M5 5h12l-3 4 3 4H5',
  inspect: 'M10 4a6 6 0 1 0 0 12 6 6 0 0 0 0-12M15 15l5 5',
  camera: 'M3 8h4l2-3h6l2 3h4v11H3zM12 10a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7',
} as const satisfies Partial<Record<Action, string>>

const ACTIONS = Object.keys(ICONS) as (keyof typeof ICONS)[]

export class RadialMenu {
  readonly root: HTMLElement
  private readonly dialog: Dialog

  constructor(perform: (action: Action) => void, close: () => void) {
    const texts = laterTexts.radial
    const buttons = ACTIONS.map((action, i) => {
      const element = button('', 'quiet', () => perform(action))
      element.append(strokeIcon(ICONS[action]), el('span', '', texts[action]))
      const angle = (i / ACTIONS.length) * 2 * Math.PI
      element.style.left = `calc(50% + ${Math.sin(angle).toFixed(3)} * var(--radius))`
      element.style.top = `calc(50% - ${Math.cos(angle).toFixed(3)} * var(--radius))`
      return element
    })
    const circle = el('div', 'radial', ...buttons, button(laterTexts.close, 'quiet', close))
    this.dialog = new Dialog(texts.title, close, circle)
    this.root = this.dialog.root
    this.root.addEventListener('click', (event) => {
      if (event.target === this.root) close()
    })
  }

  toggle(open: boolean): void {
    this.dialog.toggle(open)
  }
}
