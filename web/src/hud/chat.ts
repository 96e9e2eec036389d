// The chat log and its input line.

import { clipChat } from '../net/protocol'
import { appearanceOf } from '../render/figure'
import { el, show } from './dom'

const MAX_LINES = 100
const FADE_MS = 9000

export class Chat {
  readonly root: HTMLElement
  private readonly log = el('div', 'chat-log')
  private readonly input = el('input', 'field chat-input hidden')

  constructor(
    private readonly send: (text: string) => void,
    private readonly closed: () => void,
  ) {
    this.input.maxLength = 256
    this.input.placeholder = 'Message nearby players'
    this.input.setAttribute('aria-label', 'Chat')
    this.input.addEventListener('keydown', (event) => {
      event.stopPropagation()
      if (event.code === 'Escape') this.close()
      if (event.code !== 'Enter') return
      event.preventDefault()
      const text = clipChat(this.input.value)
      if (text) this.send(text)
      this.close()
    })
    this.input.addEventListener('blur', () => {
      if (this.open) this.close()
    })
    this.root = el('div', 'chat', this.log, this.input)
  }

  get open(): boolean {
    return !this.input.classList.contains('hidden')
  }

  focus(): void {
    show(this.input, true)
    this.root.classList.add('open')
    this.input.focus()
    this.log.scrollTop = this.log.scrollHeight
  }

  private close(): void {
    if (!this.open) return
    show(this.input, false) // before anything that may cause a blur event
    this.input.value = ''
    this.root.classList.remove('open')
    this.closed()
  }

  addMessage(player: string, name: string, text: string): void {
    const label = el('b', '', name)
    label.style.color = appearanceOf(player).css
    this.add(el('div', 'chat-line', label, el('span', '', text)))
  }

  /** Adds a line about a hit or a gift; parts are text, or players with their colours. */
  addInteraction(...parts: (string | { player: string; name: string })[]): void {
    const shown = parts.map((part) => {
      if (typeof part === 'string') return el('span', '', part)
      const label = el('b', '', part.name)
      label.style.color = appearanceOf(part.player).css
      return label
    })
    this.add(el('div', 'chat-line interaction', ...shown))
  }

  addNotice(text: string): void {
    this.add(el('div', 'chat-line notice', text))
  }

  private add(line: HTMLElement): void {
    this.log.append(line)
    while (this.log.childElementCount > MAX_LINES) this.log.firstElementChild?.remove()
    this.log.scrollTop = this.log.scrollHeight
    window.setTimeout(() => line.classList.add('old'), FADE_MS)
  }
}
