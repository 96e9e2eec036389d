// The list of what a newcomer tries first, in the words of the device that they hold and with the keys that they have chosen.

import type { InputKind } from '../input/kind'
import { keyName, type Action, type Bindings } from '../settings/bindings'
import { button, el, show } from './dom'
import './hints.css'

/** What a newcomer tries, in order. */
export const STEPS = ['look', 'walk', 'break', 'place', 'chat'] as const
export type Step = (typeof STEPS)[number]

/** The words of a hint: text, or the action whose key is named. */
type Words = readonly (string | { key: Action })[]

const key = (action: Action) => ({ key: action })

const WORDS: Record<InputKind, Record<Step, Words>> = {
  mouse: {
    look: ['Move the mouse to look around'],
    walk: [key('forward'), key('left'), key('back'), key('right'), ' to walk'],
    break: ['Left click to break the block you look at, or ', key('break')],
    place: ['Right click to place a block, or ', key('place')],
    chat: [key('chat'), ' to say hello, Enter to send it'],
  },
  touch: {
    look: ['Drag to look around'],
    walk: ['Push the stick to walk'],
    break: ['Hold a finger on a block to break it'],
    place: ['Tap the ground to place a block'],
    chat: ['Tap the speech bubble to say hello'],
  },
  gamepad: {
    look: ['Right stick to look around'],
    walk: ['Left stick to walk'],
    break: ['Right trigger to break the block you look at'],
    place: ['Left trigger to place a block'],
    chat: ['D-pad up to say hello'],
  },
}

export class Hints {
  readonly root: HTMLElement
  private readonly list = el('ol')
  private readonly hide = el('footer')
  private shown = ''

  constructor(hidden: () => void) {
    const close = button('×', 'quiet', hidden)
    close.setAttribute('aria-label', 'Hide the hints')
    this.root = el('section', 'hints panel', el('header', '', el('h2', '', 'First steps'), close), this.list, this.hide)
    this.root.setAttribute('aria-label', 'First steps')
  }

  /** Shows the hints, those that are done ticked off, or hides them. */
  show(visible: boolean, kind: InputKind, bindings: Bindings, done: ReadonlySet<Step>): void {
    const now = visible ? JSON.stringify([kind, bindings, [...done]]) : ''
    if (now === this.shown) return
    this.shown = now
    show(this.root, visible)
    if (!visible) return
    const next = STEPS.find((step) => !done.has(step))
    const lines = STEPS.map((step) => {
      const line = el('li', done.has(step) ? 'done' : step === next ? 'next' : '', ...wordsOf(kind, step, bindings))
      if (step === next) line.setAttribute('aria-current', 'step')
      if (done.has(step)) line.append(el('span', 'spoken', ' (done)'))
      return line
    })
    if (!next) lines.push(el('li', 'next last', 'That is all you need. Have fun!'))
    this.list.replaceChildren(...lines)
    const keys = kind === 'mouse' ? bindings.hints : []
    this.hide.replaceChildren(keyOf(keys), ' hides this')
    show(this.hide, keys.length > 0)
  }
}

function wordsOf(kind: InputKind, step: Step, bindings: Bindings): (Node | string)[] {
  return WORDS[kind][step].map((word) => (typeof word === 'string' ? word : keyOf(bindings[word.key])))
}

/** Returns the name of the first of some keys. */
function keyOf([code]: readonly string[]): HTMLElement {
  return el('kbd', '', code === undefined ? 'no key' : keyName(code))
}
