// The chat log and its input line, with suggestions for commands.

import { clipChat, type CommandHelp } from '../net/protocol'
import { appearanceOf } from '../render/figure'
import { texts } from '../text/texts'
import { readableInChat } from './contrast'
import { el, show } from './dom'

const MAX_LINES = 100
const FADE_MS = 9000
const MAX_SUGGESTIONS = 8

/** Text, or a player with their colour. */
export type ChatPart = string | { player: string; name: string }

export class Chat {
  readonly root: HTMLElement
  private readonly log = el('div', 'chat-log')
  private readonly input = el('input', 'field chat-input hidden')
  private readonly suggestions = el('div', 'panel chat-suggestions hidden')
  private commands: CommandHelp[] = []

  constructor(
    /** Returns false if the line cannot be sent now: it stays. */
    private readonly send: (text: string) => boolean,
    private readonly closed: () => void,
  ) {
    this.log.setAttribute('role', 'log')
    this.log.setAttribute('aria-label', texts.chat)
    this.input.maxLength = 256
    this.input.placeholder = texts.message
    this.input.enterKeyHint = 'send'
    this.input.autocomplete = 'off'
    this.input.setAttribute('aria-label', texts.chat)
    this.input.addEventListener('keydown', (event) => {
      if (event.isComposing) return
      if (event.code === 'Tab') {
        event.preventDefault()
        this.complete()
      }
      if (event.key !== 'Enter') return // keyboards on the screen have no codes
      event.preventDefault()
      const text = clipChat(this.input.value)
      if (!text || this.send(text)) this.close()
    })
    this.input.addEventListener('input', () => this.suggest())
    this.root = el('div', 'chat', this.log, this.suggestions, this.input)
    this.root.addEventListener('keydown', (event) => {
      event.stopPropagation()
      if (event.code === 'Escape' && !event.isComposing) this.close()
    })
    this.root.addEventListener('focusout', ({ relatedTarget }) => {
      // when the window loses the focus, its active element stays what it was
      const stays = this.root.contains(relatedTarget as Node | null) || this.root.contains(document.activeElement)
      if (this.open && !stays) this.close()
    })
  }

  /** Sets the commands that the player may use. */
  setCommands(commands: CommandHelp[]): void {
    this.commands = commands
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
      ...matches.map(({ name, usage, help }) =>
        el('div', '', el('b', '', `/${name}`), el('i', '', usage ?? ''), el('span', '', help)),
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

  get open(): boolean {
    return !this.input.classList.contains('hidden')
  }

  /** Opens the input line, which begins with the text. */
  focus(text: string): void {
    this.input.value = text
    this.suggest()
    show(this.input, true)
    this.root.classList.add('open')
    this.log.tabIndex = 0 // so that keys can scroll it
    this.input.focus()
    this.log.scrollTop = this.log.scrollHeight
  }

  private close(): void {
    if (!this.open) return
    show(this.input, false) // before anything that may cause a blur event
    this.input.value = ''
    this.suggest()
    this.root.classList.remove('open')
    this.log.removeAttribute('tabindex')
    this.closed()
  }

  addMessage(player: string, name: string, text: string): void {
    const label = el('b', '', name)
    label.style.color = readableInChat(appearanceOf(player).css)
    this.add(el('div', 'chat-line', label, el('span', '', text)))
  }

  /** Adds a line about a hit or a gift. */
  addInteraction(...parts: ChatPart[]): void {
    const shown = parts.map((part) => {
      if (typeof part === 'string') return el('span', '', part)
      const label = el('b', '', part.name)
      label.style.color = readableInChat(appearanceOf(part.player).css)
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
