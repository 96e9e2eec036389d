// What keys, buttons and fingers do, shown on the title screen and in the menu. Style sheets hide what the player does not use.

import { el } from './dom'

export const KEYS: [string, string][] = [
  ['W A S D', 'walk'],
  ['W W, R', 'run'],
  ['Mouse, arrow keys', 'look around'],
  ['Space', 'jump / fly up'],
  ['Shift', 'sneak / fly down'],
  ['F, Space Space', 'fly'],
  ['Left / right click, Q / X', 'break / place'],
  ['Middle click, P', 'take the block you look at'],
  ['1–9, wheel', 'choose a block'],
  ['E', 'blocks'],
  ['T', 'chat, /help for commands'],
  ['M', 'map'],
  ['Tab', 'players'],
  ['C', 'show claims from afar'],
  ['I', 'show who changed a block'],
  ['Click', 'hit a player'],
  ['G, Shift G', 'give the block you’re holding, or ten'],
  ['Esc', 'menu'],
  ['F3', 'figures'],
]

const TOUCH: [string, string][] = [
  ['Tap', 'place, hit a player'],
  ['Hold', 'break'],
  ['Drag', 'look around'],
  ['Stick', 'walk; push it further to run'],
  ['Swipe the hotbar', 'choose a block'],
]

/** Returns the lists of what keys and fingers do. */
export function helpLists(className: string): HTMLElement[] {
  const list = (kind: string, entries: [string, string][]) =>
    el(
      'ul',
      `keys ${kind} ${className}`,
      ...entries.map(([key, action]) => el('li', '', el('kbd', '', key), el('span', '', action))),
    )
  return [list('with-keys', KEYS), list('with-fingers', TOUCH)]
}
