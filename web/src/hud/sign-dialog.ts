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

/** Returns a text as a sign shows it, without control characters and separators, and empty if nothing can be seen; null if it is too long. */
export function signText(text: string): string | null {
  const lines = text.split(/\r?\n/).map((line) => visibleText(line.replace(/\t/g, ' ')).trimEnd())
  const shown = lines.join('\n').trimEnd()
  const fits = shown.split('\n').length <= LINES && lines.every((line) => Array.from(line).length <= CHARACTERS)
  return fits ? shown : null
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
        button(texts.write, 'primary', () => this.submit()),
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

  key({ key, target, ctrlKey, metaKey }: KeyboardEvent): boolean {
    if (key !== 'Enter' || target !== this.field || !(ctrlKey || metaKey)) return false
    this.submit()
    return true
  }

  private submit(): void {
    const text = signText(this.field.value)
    if (text === null) this.error.textContent = texts.tooLong(LINES, CHARACTERS)
    else this.write(text)
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
