// Lines of the chat: what players write, and what they do to each other.

import { EMOTE, type ChatEvent, type Line } from '../net/protocol'
import { appearanceOf } from '../render/figure'
import { laterTexts } from '../text/later-texts'
import { texts } from '../text/texts'
import { partsOf, visitCommand } from './chat-text'
import { readableInChat } from './contrast'
import { button, el } from './dom'
import './chat-lines.css'

/** Text, or a player with their colour. */
export type ChatPart = string | { player: string; name: string }

/** Who reads a line. */
export interface Reader {
  name: string
  /** Puts a command into the input of the chat. */
  suggest: (command: string) => void
}

/** Returns a line of a player nearby. */
export function nearbyLine({ player, name, text }: ChatEvent, reader: Reader): HTMLElement {
  const label = nameLabel(player, name)
  if (text.startsWith(EMOTE)) return textLine('emote', [el('span', '', '* '), label], text.slice(EMOTE.length), reader)
  return textLine('', [label], text, reader)
}

/** Returns a line to the whole world, or between the reader and another player. */
export function farLine(line: Line, reader: Reader): HTMLElement {
  const { channel, player = '', name, text, at = 0, earlier = false } = line
  const label = nameLabel(player, name)
  const before: HTMLElement[] = []
  if (earlier) before.push(el('time', 'chat-tag', laterTexts.clockTime(new Date(at))))
  if (channel === 'world') before.push(el('span', 'chat-tag', texts.channels.world.name))
  else label.textContent = channel === 'from' ? laterTexts.lineFrom(name) : laterTexts.lineTo(name)
  if (channel === 'world' && text.startsWith(EMOTE))
    return textLine('emote', [...before, el('span', '', '* '), label], text.slice(EMOTE.length), reader)
  return textLine(channel === 'world' ? '' : 'private', [...before, label], text, reader)
}

/** Returns a line about a hit or a gift. */
export function interactionLine(...parts: ChatPart[]): HTMLElement {
  const shown = parts.map((part) =>
    typeof part === 'string' ? el('span', '', part) : nameLabel(part.player, part.name),
  )
  return el('div', 'chat-line interaction', ...shown)
}

/** Returns a line with what is before its text, and with links in it. */
function textLine(kind: string, before: HTMLElement[], text: string, { name, suggest }: Reader): HTMLElement {
  const parts = partsOf(text, name)
  const body = el('span')
  for (const { kind, text } of parts) {
    if (kind === 'link') body.append(linkTo(text))
    else if (kind === 'place') body.append(button(text, 'chat-place', () => suggest(visitCommand(text))))
    else body.append(kind === 'name' ? el('mark', '', text) : text)
  }
  const line = el('div', `chat-line ${kind}`, ...before, body)
  line.classList.toggle(
    'mention',
    parts.some((part) => part.kind === 'name'),
  )
  return line
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
