// The list of what a newcomer tries first, in the words of the device that they hold and with the keys that they have chosen.

import type { InputKind } from '../input/kind'
import { type Action, type Bindings } from '../settings/bindings'
import { laterTexts } from '../text/later-texts'
import { button, el, show } from './dom'
import { keyNames } from './help'
import './hints.css'

/** What a newcomer tries, in order. */
export const STEPS = ['look', 'walk', 'break', 'place', 'chat'] as const
export type Step = (typeof STEPS)[number]

export class Hints {
  readonly root: HTMLElement
  private readonly list = el('ol')
  private readonly hide = el('footer')
  private shown = ''

  constructor(hidden: () => void) {
    const close = button('×', 'quiet', hidden)
    close.setAttribute('aria-label', laterTexts.hints.hide)
    this.root = el(
      'section',
      'hints panel',
      el('header', '', el('h2', '', laterTexts.hints.title), close),
      this.list,
      this.hide,
    )
    this.root.setAttribute('aria-label', laterTexts.hints.title)
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
      if (done.has(step)) line.append(el('span', 'spoken', laterTexts.hints.done))
      return line
    })
    if (!next) lines.push(el('li', 'next last', laterTexts.hints.end))
    this.list.replaceChildren(...lines)
    const keys = kind === 'mouse' ? bindings.hints : []
    this.hide.replaceChildren(keyOf(keys), laterTexts.hints.keyHides)
    show(this.hide, keys.length > 0)
  }
}

function wordsOf(kind: InputKind, step: Step, bindings: Bindings): (Node | string)[] {
  return laterTexts.hints[kind][step]
    .split(/{(\w+)}/)
    .map((part, i) => (i % 2 === 0 ? part : keyOf(bindings[part as Action])))
}

function keyOf(codes: readonly string[]): HTMLElement {
  return el('kbd', '', keyNames(codes))
}
