// The dialog in which a player writes on a sign, and the line that shows the text of the sign that they look at.

import { visibleText } from '../net/protocol'
import { laterTexts } from '../text/later-texts'
import { Dialog } from './dialog'
import { button, el } from './dom'
import './sign.css'

/** The server's limits (wire.MaxSignLines, wire.MaxSignLine). */
const LINES = 4
const CHARACTERS = 20

const texts = laterTexts.sign

/** Returns what a sign can show of a text: four lines of twenty characters, without control characters and separators; empty if nothing can be seen. */
export function signText(text: string): string {
  const lines = text.split(/\r?\n/).slice(0, LINES)
  const clipped = lines.map((line) => Array.from(visibleText(line.replace(/\t/g, ' '))).slice(0, CHARACTERS))
  return clipped
    .map((line) => line.join('').trimEnd())
    .join('\n')
    .trimEnd()
}

export class SignDialog {
  readonly root: HTMLElement
  private readonly dialog: Dialog
  private readonly field = el('textarea', 'field')
  private readonly error = el('p', 'error')

  constructor(
    private readonly write: (text: string) => void,
    cancel: () => void,
  ) {
    const { field } = this
    this.error.setAttribute('role', 'alert')
    field.rows = LINES
    field.maxLength = 2 * LINES * (CHARACTERS + 1) // in UTF-16
    field.setAttribute('aria-label', texts.text)
    const panel = el(
      'div',
      'panel sign-dialog',
      el('h2', '', texts.title),
      field,
      el('p', 'muted', texts.note(LINES, CHARACTERS)),
      this.error,
      el(
        'footer',
        '',
        button(texts.write, 'primary', () => write(signText(field.value))),
        button(laterTexts.cancel, 'quiet', cancel),
      ),
    )
    this.dialog = new Dialog(texts.title, cancel, panel)
    this.root = this.dialog.root
  }

  toggle(open: boolean): void {
    this.dialog.toggle(open)
    if (open) this.field.focus()
  }

  key({ key, ctrlKey, metaKey }: KeyboardEvent): boolean {
    if (key !== 'Enter' || !(ctrlKey || metaKey)) return false
    this.write(signText(this.field.value))
    return true
  }

  /** Sets what is on the sign now. */
  fill(text: string): void {
    this.field.value = text
    this.error.textContent = ''
  }

  /** Says that the sign is gone. */
  showGone(): void {
    this.error.textContent = texts.gone
  }
}

export class SignLine {
  readonly root = el('div', 'sign-line')
  private shown = ''

  constructor() {
    this.root.setAttribute('role', 'status')
  }

  /** Shows the text of a sign; empty: none. */
  show(text: string): void {
    if (text !== this.shown) this.root.textContent = this.shown = text
  }
}
