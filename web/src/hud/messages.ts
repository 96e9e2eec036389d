// Short messages: a banner while the connection is lost, and toasts.

import { el, show } from './dom'

const TOAST_MS = 2600
const MAX_TOASTS = 3

export class Messages {
  readonly root: HTMLElement
  private readonly banner = el('div', 'banner hidden')
  private readonly toasts = el('div', 'toasts')
  private last = ''

  constructor() {
    this.banner.setAttribute('role', 'status')
    this.root = el('div', 'messages', this.banner, this.toasts)
  }

  /** Shows a banner, or hides it if text is null. */
  setBanner(text: string | null): void {
    show(this.banner, text !== null)
    if (text !== null) this.banner.replaceChildren(el('i', 'spinner'), text)
  }

  toast(text: string): void {
    if (text === this.last && this.toasts.childElementCount > 0) return // already shown
    this.last = text
    const line = el('div', 'toast', text)
    this.toasts.append(line)
    while (this.toasts.childElementCount > MAX_TOASTS) this.toasts.firstElementChild?.remove()
    window.setTimeout(() => line.classList.add('old'), TOAST_MS)
    window.setTimeout(() => line.remove(), TOAST_MS + 500)
  }
}
