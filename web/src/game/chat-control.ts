// Shows what players write, but of those whom the player ignores. Whom they ignore is kept with the settings, on this
// device.

import type { Chat } from '../hud/chat'
import { farLine, nearbyLine, type Reader } from '../hud/chat-lines'
import { isName, type ChatEvent, type Line } from '../net/protocol'
import { MAX_IGNORED, type Settings } from '../settings/settings'
import { laterTexts } from '../text/later-texts'

/** How many lines to the world are known again after a reconnection. */
const MAX_KNOWN = 100

export class ChatControl {
  private known: string[] = [] // the last lines to the world
  private correspondent = '' // whom the player exchanged the last private line with

  constructor(
    private readonly chat: Chat,
    private readonly settings: Settings,
    /** Returns the player's name. */
    private readonly ownName: () => string,
  ) {}

  /** Shows a line of a player nearby. */
  showNearby(event: ChatEvent): void {
    if (!this.ignores(event.name)) this.chat.add(nearbyLine(event, this.reader()))
  }

  /** Shows a line to the whole world, or between the player and another one. */
  showFar(line: Line): void {
    if (line.channel !== 'to' && this.ignores(line.name)) return
    if (line.channel === 'world') {
      const id = `${line.player} ${line.at} ${line.text}`
      if (this.known.includes(id)) return
      this.known = [...this.known, id].slice(-MAX_KNOWN)
    } else this.correspondent = line.name
    this.chat.add(farLine(line, this.reader()))
  }

  /** Returns the command that a command becomes: an answer goes to whom the player was shown a private line of. */
  resolve(command: string): string {
    return this.correspondent ? command.replace(/^r\s+/i, `msg ${this.correspondent} `) : command
  }

  /** Ignores a player, or ends that, and says so. Without a name it says whom the player ignores. */
  toggleIgnored(name: string): void {
    this.chat.addNotice(toggleIgnored(this.settings, name))
  }

  private ignores(name: string): boolean {
    return this.settings.ignored.includes(name.toLowerCase())
  }

  private reader(): Reader {
    return { name: this.ownName(), suggest: (command) => this.chat.setText(command) }
  }
}

/** Ignores a player, or ends that; returns what the player is told. */
export function toggleIgnored(settings: Settings, name: string): string {
  const key = name.toLowerCase()
  const before = settings.ignored
  if (!isName(name)) return before.length === 0 ? laterTexts.ignoringNobody : laterTexts.ignoring(before.join(', '))
  if (before.includes(key)) {
    settings.ignored = before.filter((other) => other !== key)
    return laterTexts.notIgnored(name)
  }
  settings.ignored = [...before, key].slice(-MAX_IGNORED)
  return laterTexts.ignored(name)
}
