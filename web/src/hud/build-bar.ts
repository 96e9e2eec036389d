// The line that shows what the building tool waits for, how far its work is, and what it has done; with buttons for fingers.

import { laterTexts } from '../text/later-texts'
import './build.css'
import { button, el, show } from './dom'

export interface BuildBarEvents {
  raise(steps: number): void
  turn(): void
  mirror(): void
  confirm(): void
  undo(): void
  cancel(): void
}

/** What the line shows; null for nothing. */
export interface BuildStatus {
  title: string
  note: string
  /** How far the work is. */
  progress?: { done: number; total: number }
  /** The buttons that are of use now. */
  buttons: readonly (keyof BuildBarEvents)[]
  /** What the button says that agrees. */
  confirm?: string
}

const texts = laterTexts.build
const LABELS: [keyof BuildBarEvents, string][] = [
  ['raise', ''],
  ['turn', texts.turn],
  ['mirror', texts.mirror],
  ['confirm', texts.confirm],
  ['undo', texts.undo],
  ['cancel', laterTexts.cancel],
]

export class BuildBar {
  readonly root: HTMLElement
  private readonly title = el('b')
  private readonly note = el('span')
  private readonly progress = el('progress', 'hidden')
  private readonly buttons: HTMLElement[]
  private shown = ''

  constructor(events: BuildBarEvents) {
    const named = (name: keyof BuildBarEvents, ...elements: HTMLElement[]) => {
      const part = el('div', `build-${name}`, ...elements)
      part.dataset.name = name
      return part
    }
    this.buttons = LABELS.map(([name, label]) =>
      name === 'raise'
        ? named(
            name,
            button(texts.lower, 'quiet', () => events.raise(-1)),
            button(texts.higher, 'quiet', () => events.raise(1)),
          )
        : named(
            name,
            button(label, name === 'confirm' ? 'primary' : 'quiet', () => events[name]()),
          ),
    )
    const text = el('div', 'build-text', this.title, this.note)
    text.setAttribute('role', 'status')
    this.progress.setAttribute('aria-label', texts.building)
    this.root = el('div', 'build-bar hidden', text, this.progress, el('div', 'build-buttons', ...this.buttons))
  }

  show(status: BuildStatus | null): void {
    const key = JSON.stringify(status)
    if (key === this.shown) return
    this.shown = key
    show(this.root, status !== null)
    if (!status) return
    const { title, note, progress, buttons } = status
    this.title.textContent = title
    this.note.textContent = note
    show(this.progress, progress !== undefined)
    if (progress) {
      this.progress.max = progress.total
      this.progress.value = progress.done
    }
    for (const part of this.buttons) {
      if (part.dataset.name === 'confirm' && status.confirm && part.firstElementChild)
        part.firstElementChild.textContent = status.confirm
      show(
        part,
        buttons.some((name) => name === part.dataset.name),
      )
    }
  }
}
