// The chat log and its input line, with suggestions for commands.

import { EMOTE, clipChat, type CommandHelp, type Line } from '../net/protocol'
import { appearanceOf } from '../render/figure'
import type { Channel } from '../settings/settings'
import { texts } from '../text/texts'
import { partsOf, visitCommand } from './chat-text'
import { readableInChat } from './contrast'
import { button, el, show } from './dom'

const MAX_LINES = 100
const FADE_MS = 9000
const MAX_SUGGESTIONS = 8
/** How many lines of the player the arrow keys bring back. */
const MAX_HISTORY = 50

/** Who is playing, and what they have chosen. */
export interface ChatOptions {
  /** Returns the player's name; empty before they join. */
  ownName: () => string
  channel: () => Channel
  /** Chooses the other channel. */
  switchChannel: () => void
  /** Reports whether the player does not want to read what somebody writes. */
  ignored: (name: string) => boolean
  /** Sends a line; returns false if it cannot be sent now: it stays. */
  send: (text: string) => boolean
  closed: () => void
}

/** Text, or a player with their colour. */
export type ChatPart = string | { player: string; name: string }

export class Chat {
  readonly root: HTMLElement
  private readonly log = el('div', 'chat-log')
  private readonly input = el('input', 'field chat-input')
  private readonly suggestions = el('div', 'panel chat-suggestions hidden')
  private readonly channel = button('', 'chat-channel', () => this.switchChannel())
  private readonly form = el('div', 'chat-form hidden', this.channel, this.input)
  private commands: CommandHelp[] = []
  private history: string[] = [] // the player's lines, the newest last
  private recalled = 0 // the line of the history that the input shows; its length: none

  constructor(private readonly options: ChatOptions) {
    this.log.setAttribute('role', 'log')
    this.log.setAttribute('aria-label', texts.chat)
    this.input.maxLength = 256
    this.input.enterKeyHint = 'send'
    this.input.autocomplete = 'off'
    this.input.setAttribute('aria-label', texts.chat)
    this.input.addEventListener('keydown', (event) => {
      if (event.isComposing) return
      if (event.code === 'Tab') {
        event.preventDefault()
        if (this.input.value.startsWith('/')) this.complete()
        else this.switchChannel()
      }
      const step = event.code === 'ArrowUp' ? -1 : event.code === 'ArrowDown' ? 1 : 0
      if (step !== 0) {
        event.preventDefault() // of the caret, which would jump
        this.recall(step)
      }
      if (event.key !== 'Enter') return // keyboards on the screen have no codes
      event.preventDefault()
      this.submit()
    })
    this.input.addEventListener('input', () => this.suggest())
    this.root = el('div', 'chat', this.log, this.suggestions, this.form)
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

  private submit(): void {
    const text = clipChat(this.input.value)
    if (text && !this.options.send(text)) return
    if (text && this.history.at(-1) !== text) this.history = [...this.history, text].slice(-MAX_HISTORY)
    this.close()
  }

  /** Puts an earlier line of the player into the input, or a later one. */
  private recall(step: number): void {
    this.recalled = Math.min(Math.max(this.recalled + step, 0), this.history.length)
    this.setText(this.history[this.recalled] ?? '')
  }

  /** Replaces what is in the input. */
  private setText(text: string): void {
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

  /** Adds a line of a player nearby. */
  addMessage(player: string, name: string, text: string): void {
    if (this.options.ignored(name)) return
    if (text.startsWith(EMOTE))
      this.addText('emote', el('span', '', '* '), nameLabel(player, name), text.slice(EMOTE.length))
    else this.addText('', nameLabel(player, name), text)
  }

  /** Adds a line to the whole world, or between the player and another one. */
  addLine({ channel, player = '', name, text, at }: Line): void {
    if (channel !== 'to' && this.options.ignored(name)) return
    const label = nameLabel(player, name)
    const parts: HTMLElement[] = []
    if (at !== undefined) parts.push(el('time', 'chat-tag', texts.clockTime(new Date(at))))
    if (channel === 'world') parts.push(el('span', 'chat-tag', texts.channels.world.name))
    else label.textContent = channel === 'from' ? texts.lineFrom(name) : texts.lineTo(name)
    this.addText(channel === 'world' ? '' : 'private', ...parts, label, text)
  }

  /** Adds a line with what is before its text, and with links in it. */
  private addText(kind: string, ...content: [...HTMLElement[], string]): void {
    const text = content.pop() as string
    const own = this.options.ownName()
    const parts = partsOf(text, own)
    const line = el('div', `chat-line ${kind}`, ...content)
    line.classList.toggle(
      'mention',
      parts.some((part) => part.kind === 'name'),
    )
    const body = el('span')
    for (const { kind, text } of parts) {
      if (kind === 'link') body.append(linkTo(text))
      else if (kind === 'place') body.append(button(text, 'chat-place', () => this.setText(visitCommand(text))))
      else body.append(kind === 'name' ? el('mark', '', text) : text)
    }
    line.append(body)
    this.add(line)
  }

  /** Adds a line about a hit or a gift. */
  addInteraction(...parts: ChatPart[]): void {
    const shown = parts.map((part) => {
      if (typeof part === 'string') return el('span', '', part)
      return nameLabel(part.player, part.name)
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

/** Returns a name in its player's colour. Without a player it has none. */
function nameLabel(player: string, name: string): HTMLElement {
  const label = el('b', '', name)
  if (player) label.style.color = readableInChat(appearanceOf(player).css)
  return label
}

/** Returns a link to a page, which is told nothing of this one. */
function linkTo(url: string): HTMLElement {
  const link = el('a', '', url)
  link.href = url
  link.target = '_blank'
  link.rel = 'noopener noreferrer nofollow ugc'
  return link
}
