// Keyboard, mouse and pointer lock. The game polls held keys and buttons each frame and receives events for single presses.
// This module reads no game state.

import type { Intent } from '../player/body'

const DOUBLE_MS = 280
const WHEEL_STEP = 40 // of deltaY, for one slot

export interface ControlEvents {
  /** A key was pressed while the controls are active; code is KeyboardEvent.code, or '/' for whatever key types that. */
  keyPressed(code: string): void
  /** Space was pressed twice in a row. */
  jumpPressedTwice(): void
  clicked(button: number): void
  scrolled(steps: number): void
  /** The browser released the pointer lock: Escape was pressed, or the window lost focus. */
  pointerReleased(): void
}

export class Controls {
  private heldKeys = new Set<string>()
  private heldButtons = new Set<number>()
  private lastJump = -1e9
  private lastForward = -1e9
  private sprinting = false
  private wheel = 0
  private turnX = 0
  private turnY = 0
  private active = false
  /** True if the browser has no pointer lock: the mouse turns the camera only while a button is held. */
  private unlocked = false

  constructor(
    private readonly target: HTMLElement,
    private readonly events: ControlEvents,
  ) {
    window.addEventListener('keydown', (event) => this.keyDown(event))
    window.addEventListener('keyup', (event) => this.heldKeys.delete(event.code))
    window.addEventListener('blur', () => this.releaseAll())
    target.addEventListener('mousedown', (event) => this.mouseDown(event))
    window.addEventListener('mouseup', (event) => this.heldButtons.delete(event.button))
    window.addEventListener('mousemove', (event) => this.mouseMove(event))
    window.addEventListener('wheel', (event) => this.wheelTurn(event), { passive: true })
    target.addEventListener('contextmenu', (event) => event.preventDefault())
    document.addEventListener('pointerlockchange', () => {
      if (document.pointerLockElement !== target && this.active && !this.unlocked) {
        this.active = false
        this.releaseAll()
        this.events.pointerReleased()
      }
    })
  }

  /** Locks the pointer; must be called from a click or key press. Returns false if the browser refuses for now. */
  async capture(): Promise<boolean> {
    this.unlocked = false
    if (document.pointerLockElement !== this.target) {
      try {
        await this.lock()
      } catch (reason) {
        // right after Escape, browsers refuse for about a second; if pointer lock is not supported, play without it
        if (reason instanceof DOMException && ['SecurityError', 'NotAllowedError'].includes(reason.name)) return false
        this.unlocked = true
      }
    }
    this.active = true
    return true
  }

  private async lock(): Promise<void> {
    try {
      await this.target.requestPointerLock({ unadjustedMovement: true })
    } catch {
      await this.target.requestPointerLock() // Linux does not support unadjusted movement
    }
  }

  /** Releases the pointer without an event, for a panel that opens. */
  release(): void {
    this.active = false
    this.releaseAll()
    if (document.pointerLockElement) document.exitPointerLock()
  }

  /** Returns the movement input of the keys held now. */
  intent(): Intent {
    const on = (...codes: string[]) => Number(codes.some((code) => this.heldKeys.has(code)))
    const forward = on('KeyW', 'ArrowUp') - on('KeyS', 'ArrowDown')
    if (forward <= 0) this.sprinting = false
    return {
      forward,
      right: on('KeyD', 'ArrowRight') - on('KeyA', 'ArrowLeft'),
      up: this.heldKeys.has('Space'),
      down: this.heldKeys.has('ShiftLeft') || this.heldKeys.has('ShiftRight'),
      fast: this.sprinting || this.heldKeys.has('KeyR'),
    }
  }

  holds(button: number): boolean {
    return this.heldButtons.has(button)
  }

  holdsKey(code: string): boolean {
    return this.heldKeys.has(code)
  }

  /** Returns the mouse movement since the last call, in pixels. */
  consumeTurn(): { x: number; y: number } {
    const turn = { x: this.turnX, y: this.turnY }
    this.turnX = this.turnY = 0
    return turn
  }

  private releaseAll(): void {
    this.heldKeys.clear()
    this.heldButtons.clear()
    this.turnX = this.turnY = 0
    this.sprinting = false
  }

  private keyDown(event: KeyboardEvent): void {
    if (!this.active || event.ctrlKey || event.metaKey || event.altKey) return
    if (['Tab', 'Space', 'F3', 'Slash', 'Quote', 'ArrowUp', 'ArrowDown'].includes(event.code)) event.preventDefault()
    if (event.repeat) return
    this.heldKeys.add(event.code)
    if (event.code === 'Space') {
      if (event.timeStamp - this.lastJump < DOUBLE_MS) {
        this.events.jumpPressedTwice()
        this.lastJump = -1e9
      } else this.lastJump = event.timeStamp
    }
    if (event.code === 'KeyW') {
      if (event.timeStamp - this.lastForward < DOUBLE_MS) this.sprinting = true
      this.lastForward = event.timeStamp
    }
    // a panel that opens on this key must not receive it as input
    const code = event.key === '/' ? '/' : event.code // wherever the layout has it
    if (['KeyT', 'Enter', 'KeyE', '/'].includes(code)) event.preventDefault()
    this.events.keyPressed(code)
  }

  private mouseDown(event: MouseEvent): void {
    if (!this.active) return
    event.preventDefault()
    this.heldButtons.add(event.button)
    this.events.clicked(event.button)
  }

  private mouseMove(event: MouseEvent): void {
    if (!this.active || (this.unlocked && event.buttons === 0)) return
    // some browsers report a large jump when the lock begins
    if (Math.abs(event.movementX) > 600 || Math.abs(event.movementY) > 600) return
    this.turnX += event.movementX
    this.turnY += event.movementY
  }

  private wheelTurn(event: WheelEvent): void {
    if (!this.active) return
    this.wheel += event.deltaMode === 1 ? event.deltaY * WHEEL_STEP : event.deltaY
    const steps = Math.trunc(this.wheel / WHEEL_STEP)
    if (steps === 0) return
    this.wheel = 0
    this.events.scrolled(Math.sign(steps))
  }
}
