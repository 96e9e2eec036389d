// Fingers on the world: they turn the camera, and press the buttons of a mouse.

import type { Controls } from './controls'
import { Gestures, type Point } from './gestures'

/** How many pixels of a mouse one pixel of a finger is worth. */
const SPEED = 2.6

export interface TouchEvents {
  /** A finger points at the page; null once none does. */
  pointed(at: Point | null): void
  /** Returns the mouse buttons that a tap and a finger that rests stand for now. */
  buttons(): readonly [tap: number, hold: number]
}

export class TouchInput {
  private readonly gestures: Gestures
  private holding = -1 // the button that is held

  constructor(target: HTMLElement, controls: Controls, events: TouchEvents) {
    this.gestures = new Gestures({
      turned: (x, y) => controls.turn(x * SPEED, y * SPEED),
      pointed: (at) => events.pointed(at),
      tapped: () => {
        const [tap] = events.buttons()
        controls.pressButton(tap)
        controls.releaseButton(tap)
      },
      holdBegan: () => {
        this.holding = events.buttons()[1]
        controls.pressButton(this.holding)
      },
      holdEnded: () => controls.releaseButton(this.holding),
    })
    const { gestures } = this
    target.addEventListener('pointerdown', (event) => {
      if (event.pointerType === 'mouse') return
      event.preventDefault() // no mouse events of this finger
      gestures.down(event.pointerId, event.clientX, event.clientY, event.timeStamp)
    })
    target.addEventListener('pointermove', (event) => gestures.move(event.pointerId, event.clientX, event.clientY))
    target.addEventListener('pointerup', (event) => gestures.up(event.pointerId, event.timeStamp))
    target.addEventListener('pointercancel', (event) => gestures.cancel(event.pointerId))
    window.visualViewport?.addEventListener('resize', () => allowZoomOut(target))
    allowZoomOut(target)
  }

  update(now: number): void {
    this.gestures.update(now)
  }
}

/** Lets two fingers on the world zoom out a page that was zoomed in while a panel was open. */
function allowZoomOut(target: HTMLElement): void {
  target.classList.toggle('zoomed', (window.visualViewport?.scale ?? 1) > 1.01)
}
