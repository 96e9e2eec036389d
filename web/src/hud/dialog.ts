// Modal panels. The browser moves the focus into a dialog, keeps it there, gives it back, and closes the dialog at Escape.

import { el } from './dom'

export class Dialog {
  readonly root: HTMLDialogElement
  private open = false

  /** closed is called when the player closes the dialog by Escape. */
  constructor(label: string, closed: () => void, ...children: HTMLElement[]) {
    this.root = el('dialog', 'screen shade', ...children)
    this.root.setAttribute('aria-label', label)
    this.root.addEventListener('close', () => {
      if (!this.open || this.root.open) return // the event comes later: it may be open again
      this.open = false
      closed()
    })
  }

  toggle(open: boolean): void {
    this.open = open
    if (open && !this.root.open) this.root.showModal()
    if (!open) this.root.close()
  }
}
