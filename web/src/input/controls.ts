// Keyboard, mouse and pointer lock, and what touch controls and gamepads report. The game polls what is held each frame, and
// receives events for single presses. This module reads no game state.

import type { Intent } from '../player/body'
import { actionOf, codeOf, isMouse, type Action, type Bindings } from '../settings/bindings'
import type { InputSwitch } from './kind'
import { CENTRED, type Stick } from './stick'

const DOUBLE_MS = 280
/** What the buttons of the mouse do unless they are bound to something else, by MouseEvent.button. */
const BUTTONS: readonly Action[] = ['break', 'pick', 'place']
const WHEEL_STEP = 40 // of deltaY, for one press of its key
const WHEEL_MS = 100 // how long that is held

export interface ControlEvents {
  /** The key or button of an action was pressed while the controls are active. */
  acted(action: Action): void
  slotChosen(slot: number): void
  /** Space was pressed twice in a row. */
  jumpPressedTwice(): void
  clicked(button: number): void
  /** The camera is to turn by so many pixels of the mouse: at once, so that what is clicked next is what the player has turned to. */
  turned(x: number, y: number): void
  /** The browser released the pointer lock: Escape was pressed, or the window lost focus. */
  pointerReleased(): void
}

export class Controls {
  private heldKeys = new Map<string, Action | null>() // by code
  private heldActions = new Set<Action>() // by buttons on the screen and of a gamepad
  private heldButtons = new Set<number>() // by fingers
  private lastJump = -1e9
  private lastForward = -1e9
  private sprinting = false
  private wheel = 0
  private active = false
  /** The mouse turns the camera only while a button is held: the browser has no pointer lock, or the player uses no mouse. */
  private unlocked = false
  private lockable = true
  /** What a stick of the touch controls or of a gamepad does. */
  stick: Stick = CENTRED

  constructor(
    private readonly target: HTMLElement,
    private readonly input: InputSwitch,
    private readonly bindings: () => Bindings,
    private readonly events: ControlEvents,
  ) {
    window.addEventListener('blur', () => this.releaseAll())
    target.addEventListener('mousedown', (event) => this.mouseDown(event))
    window.addEventListener('mouseup', (event) => this.mouseUp(event))
    window.addEventListener('mousemove', (event) => this.mouseMove(event))
    window.addEventListener('wheel', (event) => this.wheelTurn(event), { passive: false })
    target.addEventListener('contextmenu', (event) => event.preventDefault())
    document.addEventListener('pointerlockchange', () => {
      if (this.hasLock() && !this.active) document.exitPointerLock() // a panel has opened meanwhile
      if (!this.hasLock() && this.active && !this.unlocked) {
        this.active = false
        this.releaseAll()
        this.events.pointerReleased()
      }
    })
  }

  /** Locks the pointer, if the player uses a mouse. Returns false if the browser refuses for now: then a click tries again. */
  async capture(): Promise<boolean> {
    this.active = true
    this.unlocked = true // until the browser has locked it
    if (!this.lockable || this.input.current !== 'mouse') return true
    try {
      await this.lock()
    } catch (reason) {
      // browsers refuse without a click, and for about a second after Escape; if they have no lock, play without it
      this.lockable = reason instanceof DOMException && reason.name !== 'NotSupportedError'
      return !this.lockable
    }
    this.unlocked = !this.hasLock()
    return this.hasLock()
  }

  /** Frees the pointer while the player uses no mouse, without leaving the world. */
  unlock(): void {
    this.unlocked = true
    if (document.pointerLockElement) document.exitPointerLock()
  }

  private hasLock(): boolean {
    return document.pointerLockElement === this.target
  }

  /** Requests a lock, and waits until the browser has locked the pointer or refused. */
  private async lock(): Promise<void> {
    if (this.hasLock()) return
    try {
      await this.target.requestPointerLock({ unadjustedMovement: true })
    } catch {
      await this.target.requestPointerLock() // Linux does not support unadjusted movement
    }
    if (this.hasLock()) return
    // a browser that returns no promise reports by an event
    const waiting = new AbortController()
    await new Promise((settled) => {
      for (const name of ['pointerlockchange', 'pointerlockerror'])
        document.addEventListener(name, settled, { signal: waiting.signal })
    })
    waiting.abort()
  }

  /** Releases the pointer without an event, for a panel that opens. */
  release(): void {
    this.active = false
    this.releaseAll()
    if (document.pointerLockElement) document.exitPointerLock()
  }

  /** Returns the movement input of the keys held now. */
  intent(): Omit<Intent, 'autoJump'> {
    const { stick } = this
    const on = (action: Action) => Number(this.performs(action))
    const forward = on('forward') - on('back') + stick.forward
    if (forward <= 0) this.sprinting = false
    return {
      forward,
      right: on('right') - on('left') + stick.right,
      up: this.performs('jump'),
      down: this.performs('sink'),
      fast: this.sprinting || stick.fast || this.performs('run'),
    }
  }

  holds(button: number): boolean {
    const action = BUTTONS[button]
    return this.heldButtons.has(button) || (action !== undefined && this.performs(action))
  }

  /** Reports whether a key or button of an action is held. */
  performs(action: Action): boolean {
    return this.heldActions.has(action) || [...this.heldKeys.values()].includes(action)
  }

  /** Presses the button of an action, on the screen or on a gamepad. */
  press(action: Action, now: number): void {
    if (!this.active) return
    this.heldActions.add(action)
    this.act(action, now)
  }

  lift(action: Action): void {
    this.heldActions.delete(action)
  }

  /** Presses with a finger what stands for a button of the mouse. */
  pressButton(button: number): void {
    if (!this.active) return
    this.heldButtons.add(button)
    this.events.clicked(button)
  }

  releaseButton(button: number): void {
    this.heldButtons.delete(button)
  }

  /** Turns the camera as the mouse does, by so many pixels. */
  turn(x: number, y: number): void {
    if (this.active) this.events.turned(x, y)
  }

  private releaseAll(): void {
    this.heldKeys.clear()
    this.heldActions.clear()
    this.heldButtons.clear()
    this.stick = CENTRED
    this.sprinting = false
  }

  /** Takes a key; returns true if the browser must not scroll or search, nor type it into a panel that it opens. */
  keyDown(event: KeyboardEvent): boolean {
    if (!this.active || event.altKey) return false
    // who sneaks with Control also walks with it
    const controlActs = Boolean(this.heldKeys.get('ControlLeft') ?? this.heldKeys.get('ControlRight'))
    const combined = codeOf(event)
    const code = controlActs && actionOf(this.bindings(), combined) === null ? codeOf(event, false) : combined
    const action = actionOf(this.bindings(), code)
    if (action === null && code.startsWith('Control+')) return false
    if (!event.repeat) {
      const slot = slotOf(code)
      this.heldKeys.set(event.code, action)
      if (action !== null) this.act(action, event.timeStamp)
      else if (slot !== null) this.events.slotChosen(slot)
    }
    return action !== null || code === 'Quote' || controlActs
  }

  keyUp(code: string): void {
    // macOS does not report the release of other keys while Command is held
    const released = code.startsWith('Meta') ? [...this.heldKeys.keys()].filter((key) => !isMouse(key)) : [code]
    for (const key of released) this.heldKeys.delete(key)
  }

  private act(action: Action, now: number): void {
    if (action === 'jump') {
      const twice = now - this.lastJump < DOUBLE_MS
      this.lastJump = twice ? -1e9 : now
      if (twice) this.events.jumpPressedTwice()
    }
    if (action === 'forward') {
      if (now - this.lastForward < DOUBLE_MS) this.sprinting = true
      this.lastForward = now
    }
    const button = BUTTONS.indexOf(action)
    if (button >= 0) this.events.clicked(button)
    else this.events.acted(action)
  }

  private mouseDown(event: MouseEvent): void {
    if (!this.active) return
    event.preventDefault()
    // the player has come back to the mouse, which is free since they used something else
    if (this.unlocked && this.lockable) {
      void this.capture()
      return
    }
    const code = `Mouse${event.button}`
    const action = actionOf(this.bindings(), code)
    this.heldKeys.set(code, action)
    if (action !== null) this.act(action, event.timeStamp)
  }

  private mouseUp(event: MouseEvent): void {
    // the thumb's buttons turn the pages of the browser, also where the press has opened a panel or was bound in one
    if (this.active || event.button > 2) event.preventDefault()
    this.keyUp(`Mouse${event.button}`)
  }

  private mouseMove(event: MouseEvent): void {
    if (!this.active || (this.unlocked && event.buttons === 0)) return
    // some browsers report a large jump when the lock begins
    if (Math.abs(event.movementX) > 600 || Math.abs(event.movementY) > 600) return
    this.turn(event.movementX, event.movementY)
  }

  private wheelTurn(event: WheelEvent): void {
    if (!this.active) return
    event.preventDefault() // with Control, the browser would zoom
    this.wheel += event.deltaMode === 1 ? event.deltaY * WHEEL_STEP : event.deltaY
    const steps = Math.trunc(this.wheel / WHEEL_STEP)
    if (steps === 0) return
    this.wheel = 0
    const code = steps < 0 ? 'WheelUp' : 'WheelDown'
    const action = actionOf(this.bindings(), code)
    if (action === null) return
    this.heldKeys.set(code, action)
    this.act(action, event.timeStamp)
    window.setTimeout(() => this.keyUp(code), WHEEL_MS)
  }
}

/** Returns the slot of the hotbar that a key chooses, or null. */
export function slotOf(code: string): number | null {
  return /^Digit[1-9]$/.test(code) ? Number(code.at(-1)) - 1 : null
}
