// What keys, buttons and fingers do, shown on the title screen and in the menu. Style sheets hide what the player does not use.

import { el } from './dom'

/** What a newcomer needs comes first. */
export const KEYS: [string, string][] = [
  ['W A S D', 'walk'],
  ['Mouse, arrow keys', 'look around'],
  ['Space', 'jump / fly up'],
  ['F, Space Space', 'fly'],
  ['Left / right click, Q / X', 'break / place'],
  ['E', 'blocks'],
  ['T', 'chat, /help for commands'],
  ['M', 'map'],
  ['Esc', 'menu, all keys'],
  ['W W, R', 'run'],
  ['Shift', 'sneak / fly down'],
  ['Middle click, P', 'take the block you look at'],
  ['1–9, wheel', 'choose a block'],
  ['Tab', 'players'],
  ['C', 'show claims from afar'],
  ['I', 'show who changed a block'],
  ['Click', 'hit a player'],
  ['G, Shift G', 'give the block you’re holding, or ten'],
  ['H', 'first steps'],
  ['F3', 'figures'],
]
const FIRST_KEYS = 9

const TOUCH: [string, string][] = [
  ['Tap', 'place, hit a player'],
  ['Hold', 'break'],
  ['Drag', 'look around'],
  ['Stick', 'walk; push it further to run'],
  ['Swipe the hotbar', 'choose a block'],
]

/** Returns the lists of what keys and fingers do: of all keys, or of the first ones. */
export function helpLists(className: string, all: boolean): HTMLElement[] {
  const list = (kind: string, entries: [string, string][]) =>
    el(
      'ul',
      `keys ${kind} ${className}`,
      ...entries.map(([key, action]) => el('li', '', el('kbd', '', key), el('span', '', action))),
    )
  return [list('with-keys', all ? KEYS : KEYS.slice(0, FIRST_KEYS)), list('with-fingers', TOUCH)]
}
