// A line at the top of the screen: whose claim the player has entered or left, and what to do while they choose one.

import { el } from './dom'

const SHOWN_MS = 4000

export class ClaimLine {
  readonly root = el('div', 'claim-line old')
  private timer = 0
  private hint: string | null = null

  constructor() {
    this.root.setAttribute('role', 'status')
  }

  /** Shows a line for a few seconds. */
  show(title: string, note: string): void {
    if (this.hint !== null) return
    this.fill(title, note)
    this.timer = window.setTimeout(() => this.root.classList.add('old'), SHOWN_MS)
  }

  /** Shows a line until it is null. */
  setHint(title: string | null, note = ''): void {
    const text = title === null ? null : `${title}\n${note}`
    if (text === this.hint) return
    this.hint = text
    if (title === null) this.root.classList.add('old')
    else this.fill(title, note)
  }

  private fill(title: string, note: string): void {
    window.clearTimeout(this.timer)
    this.root.replaceChildren(el('b', '', title), el('span', '', note))
    this.root.classList.remove('old')
  }
}
