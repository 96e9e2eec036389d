// The controls on a touch screen: a stick, and buttons.

import type { Controls } from '../input/controls'
import { CENTRED, withDeadZone } from '../input/stick'
import type { Action } from '../settings/bindings'
import { laterTexts } from '../text/later-texts'
import { el } from './dom'
import { strokeIcon } from './icon'
import './touch.css'

const DEAD = 0.15
/** How far beyond the rim of the stick a thumb runs, in radii. */
const RUN = 1.35

/** Icons of 24 × 24, as strokes. */
const ICONS = {
  menu: 'M4 6h16M4 12h16M4 18h16',
  chat: 'M4 5h16v11H10l-5 4v-4H4z',
  map: 'M3 6l6-2 6 2 6-2v14l-6 2-6-2-6 2zM9 4v14M15 6v14',
  players:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c0-4 3-6 6.5-6s6.5 2 6.5 6M16 4.5a3 3 0 0 1 0 6M18 14.5c2 .8 3.5 2.5 3.5 5.5',
  build: 'M13 7l4 4M4 20l10.5-10.5M11 5l2-2 8 8-2 2z',
  radial: 'M5 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2M12 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2M19 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2',
  blocks: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
  jump: 'M5 14l7-7 7 7',
  sink: 'M5 10l7 7 7-7',
  fly: 'M12 20V9M7 13l5-5 5 5M5 4h14',
} as const satisfies Partial<Record<Action, string>>

export class TouchControls {
  readonly root: HTMLElement
  private readonly players = iconButton('players')

  constructor(private readonly controls: Controls) {
    const now = () => performance.now()
    const tapped = (action: keyof typeof ICONS) => {
      const button = iconButton(action)
      onTap(button, () => {
        controls.press(action, now())
        controls.lift(action)
      })
      return button
    }
    const held = (action: keyof typeof ICONS) => {
      const button = iconButton(action)
      button.addEventListener('pointerdown', () => controls.press(action, now()))
      for (const end of ['pointerup', 'pointercancel', 'lostpointercapture'] as const)
        button.addEventListener(end, () => controls.lift(action))
      return button
    }
    const { players } = this
    onTap(players, () => {
      if (controls.performs('players')) controls.lift('players')
      else controls.press('players', now())
    })
    this.root = el(
      'div',
      'touch',
      el('div', 'touch-bar', players, ...(['map', 'blocks', 'build', 'radial', 'chat', 'menu'] as const).map(tapped)),
      stick(controls),
      el('div', 'touch-pad', tapped('fly'), held('jump'), held('sink')),
    )
    this.root.addEventListener('contextmenu', (event) => event.preventDefault())
  }

  /** Shows whether the list of players is open; called once per frame. A panel that opens closes the list. */
  update(): void {
    this.players.ariaPressed = String(this.controls.performs('players'))
  }
}

/**
 * Calls act when a button is let go: a browser shows its keyboard only then. Fingers are handled here because browsers make no
 * click of a tap soon after a swipe, or beside another finger.
 */
function onTap(button: HTMLElement, act: () => void): void {
  button.addEventListener('click', act)
  button.addEventListener('touchend', (event) => {
    event.preventDefault() // no click as well
    const finger = event.changedTouches[0]
    if (finger && button.contains(document.elementFromPoint(finger.clientX, finger.clientY))) act()
  })
}

function iconButton(action: keyof typeof ICONS): HTMLButtonElement {
  const button = el('button', `touch-button touch-${action}`)
  button.append(strokeIcon(ICONS[action]))
  button.type = 'button'
  button.setAttribute('aria-label', laterTexts.touch[action])
  return button
}

function stick(controls: Controls): HTMLElement {
  const knob = el('div', 'touch-knob')
  const base = el('div', 'touch-stick', knob)
  let finger: number | null = null
  const move = ({ pointerId, clientX, clientY }: PointerEvent) => {
    if (pointerId !== finger) return
    const { left, top, width } = base.getBoundingClientRect()
    if (width === 0) return // an open panel hides the stick, and the finger still rests
    const radius = width / 2
    const x = (clientX - left) / radius - 1
    const y = (clientY - top) / radius - 1
    const length = Math.max(1, Math.hypot(x, y))
    const [right, back] = withDeadZone(x, y, DEAD)
    const fast = length > RUN && y < 0
    controls.stick = { forward: -back, right, fast }
    knob.style.transform = `translate(${((x / length) * radius) / 2}px, ${((y / length) * radius) / 2}px)`
    knob.classList.toggle('fast', fast)
  }
  const end = ({ pointerId }: PointerEvent) => {
    if (pointerId !== finger) return
    finger = null
    controls.stick = CENTRED
    knob.style.transform = ''
    knob.classList.remove('fast')
  }
  base.addEventListener('pointerdown', (event) => {
    finger ??= event.pointerId
    base.setPointerCapture(event.pointerId)
    move(event)
  })
  base.addEventListener('pointermove', move)
  for (const name of ['pointerup', 'pointercancel', 'lostpointercapture'] as const) base.addEventListener(name, end)
  return base
}
