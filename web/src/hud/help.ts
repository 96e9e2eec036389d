// What keys, buttons and fingers do, shown on the title screen and in the menu. Style sheets hide what the player does not use.

import { keyName, type Action, type Bindings } from '../settings/bindings'
import { el } from './dom'

/** What a newcomer needs comes first. An action in braces stands for its key. */
export const KEYS: [string, string][] = [
  ['{forward} {left} {back} {right}', 'walk'],
  ['Mouse, {lookUp} {lookLeft} {lookDown} {lookRight}', 'look around'],
  ['{jump}', 'jump / fly up'],
  ['{fly}, {jump} {jump}', 'fly'],
  ['Left / right click, {break} / {place}', 'break / place'],
  ['{blocks}', 'blocks'],
  ['{chat}', 'chat, /help for commands'],
  ['{map}', 'map'],
  ['{build}', 'walls, boxes, copies'],
  ['{undo}, {redo}', 'undo, redo'],
  ['{menu}', 'menu, all keys'],
  ['{forward} {forward}, {run}', 'run'],
  ['{sink}', 'sneak / fly down'],
  ['Middle click, {pick}', 'take the block you look at'],
  ['1–9, wheel', 'choose a block'],
  ['{players}', 'players'],
  ['{claims}', 'show claims from afar'],
  ['{inspect}', 'show who changed a block'],
  ['Click', 'hit a player'],
  ['{give}, Shift {give}', 'give the block you’re holding, or ten'],
  ['{camera}', 'see yourself'],
  ['{wave}', 'wave'],
  ['{mute}', 'sounds on, off'],
  ['{hints}', 'first steps'],
  ['{debug}', 'figures'],
]
const FIRST_KEYS = 11

const TOUCH: [string, string][] = [
  ['Tap', 'place, hit a player'],
  ['Hold', 'break'],
  ['Drag', 'look around'],
  ['Stick', 'walk; push it further to run'],
  ['Swipe the hotbar', 'choose a block'],
  ['Hammer', 'walls, boxes, copies, undo'],
]

/** Returns a line's keys as the player has bound them. */
export function keysOf(line: string, bindings: Bindings): string {
  return line
    .replace(/{(\w+)}/g, (_, action: Action) =>
      keyName(bindings[action][0] ?? 'no key').replace(/^(Left|Right) (?!a)/, ''),
    )
    .replace('Up arrow Left arrow Down arrow Right arrow', 'arrow keys')
}

/** The lists of what keys and fingers do: of all keys, or of the first ones. */
export class Help {
  lists: HTMLElement[]

  constructor(
    private readonly className: string,
    private readonly all: boolean,
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
    const list = (kind: string, entries: [string, string][]) =>
      el(
        'ul',
        `keys ${kind} ${this.className}`,
        ...entries.map(([keys, action]) => el('li', '', el('kbd', '', keysOf(keys, bindings)), el('span', '', action))),
      )
    return [list('with-keys', this.all ? KEYS : KEYS.slice(0, FIRST_KEYS)), list('with-fingers', TOUCH)]
  }
}
