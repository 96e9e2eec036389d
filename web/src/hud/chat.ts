// What was said, and a line to say something.

import { clipChat } from '../net/protocol'
import { looksOf } from '../render/figure'
import { el, show } from './dom'

const KEPT = 100
const FADES_AFTER = 9000

export class Chat {
  readonly root: HTMLElement
  private readonly log = el('div', 'chat-log')
  private readonly input = el('input', 'field chat-input hidden')

  constructor(
    private readonly say: (text: string) => void,
    private readonly closed: () => void,
  ) {
    this.input.maxLength = 256
    this.input.placeholder = 'Say something to those who see you'
    this.input.setAttribute('aria-label', 'Chat')
    this.input.addEventListener('keydown', (event) => {
      event.stopPropagation()
      if (event.code === 'Escape') this.finish()
      if (event.code !== 'Enter') return
      event.preventDefault()
      const text = clipChat(this.input.value)
      if (text) this.say(text)
      this.finish()
    })
    this.input.addEventListener('blur', () => {
      if (this.open) this.finish()
    })
    this.root = el('div', 'chat', this.log, this.input)
  }

  get open(): boolean {
    return !this.input.classList.contains('hidden')
  }

  begin(): void {
    show(this.input, true)
    this.root.classList.add('open')
    this.input.focus()
    this.log.scrollTop = this.log.scrollHeight
  }

  private finish(): void {
    if (!this.open) return
    show(this.input, false) // before anything that may blur
    this.input.value = ''
    this.root.classList.remove('open')
    this.closed()
  }

  said(player: string, name: string, text: string): void {
    const who = el('b', '', name)
    who.style.color = looksOf(player).css
    this.line(el('div', 'chat-line', who, el('span', '', text)))
  }

  /** What players do to one another; parts are text, or players with their colours. */
  deed(...parts: (string | { player: string; name: string })[]): void {
    const shown = parts.map((part) => {
      if (typeof part === 'string') return el('span', '', part)
      const who = el('b', '', part.name)
      who.style.color = looksOf(part.player).css
      return who
    })
    this.line(el('div', 'chat-line deed', ...shown))
  }

  notice(text: string): void {
    this.line(el('div', 'chat-line notice', text))
  }

  private line(line: HTMLElement): void {
    this.log.append(line)
    while (this.log.childElementCount > KEPT) this.log.firstElementChild!.remove()
    this.log.scrollTop = this.log.scrollHeight
    window.setTimeout(() => line.classList.add('old'), FADES_AFTER)
  }
}
