// The commands that the player may use, by group.

import type { CommandHelp } from '../net/protocol'
import { laterTexts } from '../text/later-texts'
import { commandHelp, commandUsage, groupTitle } from '../text/notice-texts'
import { Dialog } from './dialog'
import { button, el } from './dom'
import './command-list.css'

const texts = laterTexts.commands

export interface CommandListEvents {
  close: () => void
  /** Begins a line of the chat with a command. */
  write: (text: string) => void
}

export class CommandList {
  readonly root: HTMLElement
  private readonly dialog: Dialog
  private readonly groups = el('div', 'command-groups')

  constructor(private readonly events: CommandListEvents) {
    const close = button(laterTexts.close, 'quiet', events.close)
    const head = el('header', '', el('h2', '', texts.title), close)
    this.dialog = new Dialog(texts.title, events.close, el('div', 'panel command-list', head, this.groups))
    this.root = this.dialog.root
  }

  toggle(open: boolean): void {
    this.dialog.toggle(open)
  }

  /** Lists the commands. The group of the topic is open, which is a group or a command, and a command has the focus; without a topic the first group. */
  show(commands: CommandHelp[], topic: string): void {
    const groups = [...new Set(commands.map(({ group = '' }) => group))]
    const about = commands.find(({ name }) => `/${name}` === topic || name === topic)
    const open = topic === '' ? groups[0] : groups.includes(topic) ? topic : about?.group
    this.groups.replaceChildren(
      ...(open === undefined ? [el('p', '', texts.none(topic))] : []),
      ...groups.map((group) => {
        const inGroup = commands.filter((command) => (command.group ?? '') === group)
        const names = inGroup.map(({ name }) => `/${name}`).join(' ')
        const title = el('summary', '', el('b', '', groupTitle(group)), el('span', 'muted', names))
        const lines = inGroup.map((command) => this.line(command, command === about))
        const more = group === 'build' ? el('p', 'muted', laterTexts.build.commands) : null
        const details = el('details', '', title, el('ul', '', ...lines), more)
        details.name = 'commands' // one is open at a time
        details.open = group === open
        return details
      }),
    )
  }

  private line(command: CommandHelp, asked: boolean): HTMLElement {
    const { name, usage = '' } = command
    const write = button('', 'command', () => this.events.write(`/${name} `))
    write.append(el('b', '', `/${name}`), ' ', el('i', '', commandUsage(usage)))
    if (asked) {
      write.autofocus = true // when the dialog opens
      write.setAttribute('aria-current', 'true')
    }
    return el('li', '', write, el('span', '', commandHelp(command)))
  }
}
