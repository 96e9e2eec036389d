// The chat log and its input line, with suggestions for commands.

import { clipChat, type CommandHelp } from '../net/protocol'
import type { Channel } from '../settings/settings'
import { commandHelp, commandUsage } from '../text/notices'
import { texts } from '../text/texts'
import { button, el, show } from './dom'

const MAX_LINES = 100
const FADE_MS = 9000
const MAX_SUGGESTIONS = 8
/** How many lines of the player the arrow keys bring back. */
const MAX_HISTORY = 50

export interface ChatOptions {
  channel: () => Channel
  /** Chooses the other channel. */
  switchChannel: () => void
  /** Sends a line; returns false if it cannot be sent now: it stays. */
  send: (text: string) => boolean
  closed: () => void
}

export class Chat {
  readonly root: HTMLElement
  private readonly log = el('div', 'chat-log')
  private readonly input = el('input', 'field chat-input')
  private readonly suggestions = el('div', 'panel chat-suggestions hidden')
  private readonly channel = button('', 'chat-channel', () => this.switchChannel())
  private readonly form = el('div', 'chat-form hidden', this.channel, this.input)
  /** Those that the player may use. */
  commands: CommandHelp[] = []
  private history: string[] = [] // the player's lines, the newest last
  private draft = '' // what the input showed before a line of the history
  private recalled = 0 // the line of the history that the input shows; its length: none

  constructor(private readonly options: ChatOptions) {
    this.log.setAttribute('role', 'log')
    this.log.setAttribute('aria-label', texts.chat)
    this.input.maxLength = 256
    this.input.enterKeyHint = 'send'
    this.input.autocomplete = 'off'
    this.input.addEventListener('input', () => this.suggest())
    this.channel.addEventListener('mousedown', (event) => event.preventDefault()) // the input keeps the focus, also in Safari
    this.root = el('div', 'chat', this.log, this.suggestions, this.form)
    this.root.addEventListener('focusout', ({ relatedTarget }) => {
      // when the window loses the focus, its active element stays what it was
      const stays = this.root.contains(relatedTarget as Node | null) || this.root.contains(document.activeElement)
      if (this.open && !stays) this.close()
    })
  }

  key({ code, key, shiftKey, isComposing, target }: KeyboardEvent): boolean {
    if (isComposing) return false
    if (code === 'Escape') this.close()
    else if (target !== this.input) return false
    else if (key === 'Enter')
      this.submit() // keyboards on the screen have no codes
    else if (code === 'ArrowUp') this.recall(-1)
    else if (code === 'ArrowDown') this.recall(1)
    else if (code !== 'Tab' || shiftKey) return false
    else if (this.input.value.startsWith('/')) this.complete()
    else this.switchChannel()
    return true
  }

  /** Returns the commands that the input line may become; once a name is complete, only that one. */
  private matches(): CommandHelp[] {
    const text = this.input.value
    if (!text.startsWith('/')) return []
    const [name = '', ...rest] = text.slice(1).split(' ')
    return this.commands.filter((c) => (rest.length > 0 ? c.name === name : c.name.startsWith(name)))
  }

  private suggest(): void {
    const matches = this.matches().slice(0, MAX_SUGGESTIONS)
    show(this.suggestions, matches.length > 0)
    this.suggestions.replaceChildren(
      ...matches.map(({ name, usage = '', help }) =>
        el(
          'div',
          '',
          el('b', '', `/${name}`),
          el('i', '', commandUsage(usage)),
          el('span', '', commandHelp({ name, help })),
        ),
      ),
    )
  }

  /** Completes the name of a command, as far as it is certain. */
  private complete(): void {
    const names = this.matches().map(({ name }) => name)
    const [first] = names
    if (first === undefined || this.input.value.includes(' ')) return
    let common = first
    while (!names.every((name) => name.startsWith(common))) common = common.slice(0, -1)
    this.input.value = `/${common}${names.length === 1 ? ' ' : ''}`
    this.suggest()
  }

  private submit(): void {
    const text = clipChat(this.input.value)
    if (text && !this.options.send(text)) return
    if (text && this.history.at(-1) !== text) this.history = [...this.history, text].slice(-MAX_HISTORY)
    this.close()
  }

  /** Puts an earlier line of the player into the input, or a later one. */
  private recall(step: number): void {
    if (this.recalled === this.history.length) this.draft = this.input.value
    this.recalled = Math.min(Math.max(this.recalled + step, 0), this.history.length)
    this.setText(this.history[this.recalled] ?? this.draft)
  }

  /** Replaces what is in the input. */
  setText(text: string): void {
    this.input.value = text
    this.suggest()
    this.input.focus()
  }

  private switchChannel(): void {
    this.options.switchChannel()
    this.showChannel()
    this.input.focus()
  }

  private showChannel(): void {
    const channel = this.options.channel()
    this.channel.textContent = texts.channels[channel].name
    this.channel.title = texts.switchChannel
    this.input.placeholder = texts.channels[channel].message
    this.input.setAttribute('aria-label', texts.channels[channel].message)
  }

  get open(): boolean {
    return !this.form.classList.contains('hidden')
  }

  /** Opens the input line, which begins with the text. */
  focus(text: string): void {
    this.input.value = text
    this.suggest()
    this.showChannel()
    this.recalled = this.history.length
    show(this.form, true)
    this.root.classList.add('open')
    this.log.tabIndex = 0 // so that keys can scroll it
    this.input.focus()
    this.log.scrollTop = this.log.scrollHeight
  }

  private close(): void {
    if (!this.open) return
    show(this.form, false) // before anything that may cause a blur event
    this.input.value = ''
    this.suggest()
    this.root.classList.remove('open')
    this.log.removeAttribute('tabindex')
    this.options.closed()
  }

  addNotice(text: string): void {
    this.add(el('div', 'chat-line notice', text))
  }

  /** Adds a line, which chat-lines.ts makes of what players write and do. */
  add(line: HTMLElement): void {
    const { scrollTop, scrollHeight, clientHeight } = this.log
    const follows = !this.open || scrollTop + clientHeight >= scrollHeight - 2 // else the player reads what was before
    this.log.append(line)
    while (this.log.childElementCount > MAX_LINES) this.log.firstElementChild?.remove()
    if (follows) this.log.scrollTop = this.log.scrollHeight
    window.setTimeout(() => line.classList.add('old'), FADE_MS)
  }
}
