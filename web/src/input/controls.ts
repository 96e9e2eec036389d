// Keyboard, mouse and pointer lock, gathered into what the player wants. Reads no game state: the game asks each frame
// what is held, and is told of single presses.

import type { Intent } from '../player/body'

const DOUBLE_MS = 280
const WHEEL_STEP = 40 // of deltaY, for one slot

export interface ControlEvents {
  /** A key went down, by its place on the keyboard (KeyboardEvent.code), while the player plays. */
  pressed(code: string): void
  /** Space twice in a row. */
  pressedJumpTwice(): void
  clicked(button: number): void
  wheeled(steps: number): void
  /** The pointer was freed: by Escape, or another window. */
  freed(): void
}

export class Controls {
  private held = new Set<string>()
  private buttons = new Set<number>()
  private lastJump = -1e9
  private lastForward = -1e9
  private sprinting = false
  private wheel = 0
  private turnX = 0
  private turnY = 0
  private playing = false
  /** True where the browser gives no pointer lock: the mouse turns while a button is held. */
  private unlocked = false

  constructor(
    private readonly target: HTMLElement,
    private readonly presses: ControlEvents,
  ) {
    window.addEventListener('keydown', (event) => this.keyDown(event))
    window.addEventListener('keyup', (event) => this.held.delete(event.code))
    window.addEventListener('blur', () => this.letGo())
    target.addEventListener('mousedown', (event) => this.mouseDown(event))
    window.addEventListener('mouseup', (event) => this.buttons.delete(event.button))
    window.addEventListener('mousemove', (event) => this.mouseMove(event))
    window.addEventListener('wheel', (event) => this.wheelTurn(event), { passive: true })
    target.addEventListener('contextmenu', (event) => event.preventDefault())
    document.addEventListener('pointerlockchange', () => {
      if (document.pointerLockElement !== target && this.playing && !this.unlocked) {
        this.playing = false
        this.letGo()
        this.presses.freed()
      }
    })
  }

  /** Takes the mouse; to be called from a click or a key press. False if the browser does not give it now. */
  async capture(): Promise<boolean> {
    this.unlocked = false
    if (document.pointerLockElement !== this.target) {
      try {
        await this.lock()
      } catch (reason) {
        // straight after Escape, browsers refuse for a second; without the feature at all, play without the lock
        if (reason instanceof DOMException && ['SecurityError', 'NotAllowedError'].includes(reason.name)) return false
        this.unlocked = true
      }
    }
    this.playing = true
    return true
  }

  private async lock(): Promise<void> {
    try {
      await this.target.requestPointerLock({ unadjustedMovement: true })
    } catch {
      await this.target.requestPointerLock() // Linux has no unadjusted movement
    }
  }

  /** Gives the mouse back without telling: a panel opens. */
  release(): void {
    this.playing = false
    this.letGo()
    if (document.pointerLockElement) document.exitPointerLock()
  }

  get capturing(): boolean {
    return this.playing
  }

  /** What is held now. */
  intent(): Intent {
    const on = (...codes: string[]) => Number(codes.some((code) => this.held.has(code)))
    const forward = on('KeyW', 'ArrowUp') - on('KeyS', 'ArrowDown')
    if (forward <= 0) this.sprinting = false
    return {
      forward,
      right: on('KeyD', 'ArrowRight') - on('KeyA', 'ArrowLeft'),
      up: this.held.has('Space'),
      down: this.held.has('ShiftLeft') || this.held.has('ShiftRight'),
      fast: this.sprinting || this.held.has('KeyR'),
    }
  }

  holds(button: number): boolean {
    return this.buttons.has(button)
  }

  holdsKey(code: string): boolean {
    return this.held.has(code)
  }

  /** How far the mouse has turned since the last time, in pixels. */
  consumeTurn(): { x: number; y: number } {
    const turn = { x: this.turnX, y: this.turnY }
    this.turnX = this.turnY = 0
    return turn
  }

  private letGo(): void {
    this.held.clear()
    this.buttons.clear()
    this.turnX = this.turnY = 0
    this.sprinting = false
  }

  private keyDown(event: KeyboardEvent): void {
    if (!this.playing || event.ctrlKey || event.metaKey || event.altKey) return
    if (['Tab', 'Space', 'F3', 'Slash', 'Quote', 'ArrowUp', 'ArrowDown'].includes(event.code)) event.preventDefault()
    if (event.repeat) return
    this.held.add(event.code)
    if (event.code === 'Space') {
      if (event.timeStamp - this.lastJump < DOUBLE_MS) {
        this.presses.pressedJumpTwice()
        this.lastJump = -1e9
      } else this.lastJump = event.timeStamp
    }
    if (event.code === 'KeyW') {
      if (event.timeStamp - this.lastForward < DOUBLE_MS) this.sprinting = true
      this.lastForward = event.timeStamp
    }
    // a panel that opens now must not get this very key as its first letter
    if (['KeyT', 'Enter', 'KeyE'].includes(event.code)) event.preventDefault()
    this.presses.pressed(event.code)
  }

  private mouseDown(event: MouseEvent): void {
    if (!this.playing) return
    event.preventDefault()
    this.buttons.add(event.button)
    this.presses.clicked(event.button)
  }

  private mouseMove(event: MouseEvent): void {
    if (!this.playing || (this.unlocked && event.buttons === 0)) return
    // some browsers report a leap when the lock begins
    if (Math.abs(event.movementX) > 600 || Math.abs(event.movementY) > 600) return
    this.turnX += event.movementX
    this.turnY += event.movementY
  }

  private wheelTurn(event: WheelEvent): void {
    if (!this.playing) return
    this.wheel += event.deltaMode === 1 ? event.deltaY * WHEEL_STEP : event.deltaY
    const steps = Math.trunc(this.wheel / WHEEL_STEP)
    if (steps === 0) return
    this.wheel = 0
    this.presses.wheeled(Math.sign(steps))
  }
}
