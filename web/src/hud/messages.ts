// Short messages: a banner while the connection or the graphics are lost, and toasts.

import { el, show } from './dom'

const TOAST_MS = 2600
const MAX_TOASTS = 3

export class Messages {
  readonly root: HTMLElement
  private readonly banners = {
    connection: el('div', 'connection banner hidden'),
    graphics: el('div', 'graphics banner hidden'),
  }
  private readonly toasts = el('div', 'toasts')
  private last = ''

  constructor() {
    const banners = Object.values(this.banners)
    for (const banner of banners) banner.setAttribute('role', 'status')
    this.root = el('div', 'messages', ...banners, this.toasts)
  }

  /** Shows what is lost, or hides it if text is null. */
  setBanner(text: string | null, lost: 'connection' | 'graphics' = 'connection'): void {
    const banner = this.banners[lost]
    show(banner, text !== null)
    if (text !== null) banner.replaceChildren(el('i', 'spinner'), text)
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
