// What keys, buttons and fingers do, shown on the title screen and in the menu. Style sheets hide what the player does not use.

import type { InputKind } from '../input/kind'
import { isMouse, type Action, type Bindings } from '../settings/bindings'
import type { HelpLine } from '../text/en'
import { texts } from '../text/texts'
import { el } from './dom'

const ARROWS = ['ArrowUp', 'ArrowLeft', 'ArrowDown', 'ArrowRight']

/** Returns the names of the first button of the mouse and of the first key that an action has. */
export function keyNames(codes: readonly string[]): string {
  const first = [codes.find(isMouse), codes.find((code) => !isMouse(code))].filter((code) => code !== undefined)
  const names = first.map((code) => texts.key(code.replace(/^(Shift|Control|Alt|Meta)(Left|Right)$/, '$1')))
  return names.join(' / ') || texts.noKey
}

/** Returns a text with the keys of actions as the player has bound them. */
export function keysOf(line: string, bindings: Bindings): string {
  return line
    .replace(/{(\w+)}/g, (_, action: Action) => keyNames(bindings[action]))
    .replace(ARROWS.map(texts.key).join(' '), texts.arrowKeys)
}

/** Returns the text for what the player uses now, with the keys of actions as the player has bound them. */
export function textForInput(texts: Record<InputKind, string>, bindings: Bindings): string {
  return keysOf(texts[document.documentElement.dataset.input as InputKind], bindings)
}

/** The lists of what keys and fingers do. */
export class Help {
  lists: HTMLElement[]

  constructor(
    private readonly className: string,
    private readonly lines: HelpLine[],
    bindings: Bindings,
  ) {
    this.lists = this.build(bindings)
  }

  /** Shows other keys. */
  update(bindings: Bindings): void {
    const lists = this.build(bindings)
    this.lists.forEach((list, i) => list.replaceWith(lists[i] ?? ''))
    this.lists = lists
  }

  private build(bindings: Bindings): HTMLElement[] {
    const list = (kind: string, entries: HelpLine[]) =>
      el(
        'ul',
        `keys ${kind} ${this.className}`,
        ...entries.map(([keys, action]) => el('li', '', el('kbd', '', keysOf(keys, bindings)), el('span', '', action))),
      )
    return [list('with-keys', this.lines), list('with-fingers', Object.values(texts.touchHelp))]
  }
}
