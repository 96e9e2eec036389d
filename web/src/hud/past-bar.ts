// The bar of the time machine: a slider over the changes of a place, and who has made the one that is shown last. A drag beside it turns the
// camera.

import { laterTexts } from '../text/later-texts'
import { texts as commonTexts } from '../text/texts'
import { AIR, isReplaceable, kindOf } from '../world/blocks'
import type { PastChange } from '../world/past'
import { button, el, show } from './dom'
import './past.css'

const texts = laterTexts.past

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

export interface PastBarEvents {
  /** The camera is to be turned, by so many pixels. */
  turned(x: number, y: number): void
  /** The moment after so many changes was chosen. */
  sought(at: number): void
  played(): void
  left(): void
}

export class PastBar {
  readonly root: HTMLElement
  private readonly line = el('b')
  private readonly when = el('span')
  private readonly note = el('p', 'error')
  private readonly slider = el('input')
  private readonly controls: HTMLElement
  private readonly oldest = el('span')
  private readonly count = el('span')
  private readonly play: HTMLButtonElement
  private changes: readonly PastChange[] = []

  constructor(private readonly events: PastBarEvents) {
    this.slider.type = 'range'
    this.slider.min = '0'
    this.slider.setAttribute('aria-label', texts.slider)
    this.slider.addEventListener('input', () => events.sought(Number(this.slider.value)))
    this.play = button(texts.play, 'primary', () => events.played())
    this.controls = el(
      'div',
      'past-controls',
      this.slider,
      el('div', 'past-ends muted', this.oldest, this.count, el('span', '', texts.now)),
      this.play,
    )
    const text = el('div', 'past-text', this.line, this.when)
    text.setAttribute('role', 'status')
    const bar = el(
      'div',
      'past-bar panel',
      text,
      this.note,
      this.controls,
      button(texts.leave, 'quiet', () => events.left()),
    )
    this.root = el('div', 'past hidden', bar)
    this.root.setAttribute('role', 'region')
    this.root.setAttribute('aria-label', texts.label)
    this.listen()
  }

  toggle(open: boolean): void {
    show(this.root, open)
  }

  key({ code, repeat }: KeyboardEvent): boolean {
    if (code !== 'Escape' || repeat) return false
    this.events.left()
    return true
  }

  /** Shows that the history is loaded, and how many changes are there. */
  load(changes: number): void {
    this.say(texts.loading(changes))
  }

  /** Shows why there is no history. */
  fail(why: string): void {
    this.say('', why)
  }

  /** Begins to show changes, oldest first. A part may be missing, or older ones. */
  begin(changes: readonly PastChange[], missing: boolean, older: boolean): void {
    this.changes = changes
    this.say(changes.length === 0 && !missing ? texts.empty : '', missing ? texts.missing : older ? texts.older : '')
    show(this.controls, changes.length > 0)
    this.slider.max = String(changes.length)
    this.slider.focus()
  }

  /** Shows the moment after so many of the changes; now is the time, in ms since 1970. */
  show(at: number, now: number): void {
    const { changes, slider } = this
    const [first] = changes
    if (!first) return
    const { line, when } = describe(changes, at, now)
    this.line.textContent = line
    this.when.textContent = when
    this.oldest.textContent = ago(now - first.time)
    this.count.textContent = texts.count(at, changes.length)
    slider.value = String(at)
    slider.setAttribute('aria-valuetext', `${line}, ${when}`)
  }

  setPlaying(playing: boolean): void {
    this.play.textContent = playing ? texts.pause : texts.play
  }

  private say(line: string, note = ''): void {
    this.line.textContent = line
    this.when.textContent = ''
    this.note.textContent = note
    show(this.note, note !== '')
    show(this.controls, false)
  }

  /** Turns the camera while a pointer is dragged beside the bar. */
  private listen(): void {
    const { root } = this
    let from: { x: number; y: number } | null = null
    root.addEventListener('pointerdown', (event) => {
      if (event.target !== root || !event.isPrimary) return
      root.setPointerCapture(event.pointerId)
      from = { x: event.clientX, y: event.clientY }
    })
    root.addEventListener('pointermove', ({ clientX, clientY, isPrimary }) => {
      if (!from || !isPrimary) return
      this.events.turned(clientX - from.x, clientY - from.y)
      from = { x: clientX, y: clientY }
    })
    const end = () => (from = null)
    root.addEventListener('pointerup', end)
    root.addEventListener('pointercancel', end)
  }
}

/** Returns what was changed last at a moment, and when; now is the time, in ms since 1970. */
export function describe(changes: readonly PastChange[], at: number, now: number): { line: string; when: string } {
  const change = changes[at - 1]
  if (!change) return { line: texts.before, when: ago(now - (changes[0]?.time ?? now)) }
  const { name, before, after, time } = change
  const text = {
    line:
      after === AIR
        ? texts.broke(name, commonTexts.block(kindOf(before).name))
        : isReplaceable(before)
          ? texts.placed(name, commonTexts.block(kindOf(after).name))
          : texts.replaced(name, commonTexts.block(kindOf(before).name), commonTexts.block(kindOf(after).name)),
    when: `${ago(now - time)}, ${texts.time(new Date(time))}`,
  }
  return text
}

/** Returns how long ago something was. */
function ago(ms: number): string {
  if (ms < MINUTE_MS) return texts.justNow
  if (ms < HOUR_MS) return texts.minutesAgo(Math.floor(ms / MINUTE_MS))
  if (ms < DAY_MS) return texts.hoursAgo(Math.floor(ms / HOUR_MS))
  return texts.daysAgo(Math.floor(ms / DAY_MS))
}
