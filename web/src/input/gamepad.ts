// Gamepads with the standard mapping (https://w3c.github.io/gamepad/#remapping). They have no events: the frame loop polls them.

import { LEFT, RIGHT } from '../player/block-interaction'
import type { Action } from '../settings/bindings'
import type { Controls } from './controls'
import { CENTRED, withDeadZone } from './stick'

const DEAD = 0.15
const TRIGGER = 0.4
const POINTS = 0.5 // how far a stick that points somewhere is pushed
/** How far the right stick turns the camera, in pixels of a mouse for each second. */
const TURN = 1100

/** What the player does with a gamepad, and only as long as they do it. */
export interface PadEvents {
  /** A button or stick is in use. */
  used(): void
  /** Back to the world from a panel. */
  resumed(): void
  /** Moves the focus of a panel some steps further. */
  focused(steps: number): void
  /** Moves what has the focus in a panel by some steps; returns false if it cannot be moved. */
  adjusted(steps: number): boolean
  /** A stick points somewhere in a panel: x to the right, y down, with a length of at most 1. */
  pointed(x: number, y: number): void
  /** Presses what has the focus in a panel. */
  chosen(): void
}

export interface PadState {
  readonly axes: readonly number[]
  readonly buttons: readonly { readonly pressed: boolean; readonly value: number }[]
}

const ACTIONS: [button: number, action: Action][] = [
  [0, 'jump'],
  [1, 'sink'],
  [2, 'blocks'],
  [3, 'fly'],
  [4, 'previous'],
  [5, 'next'],
  [8, 'map'],
  [9, 'menu'],
  [10, 'run'],
  [11, 'pick'],
  [12, 'chat'],
  [13, 'players'],
  [14, 'build'],
  [15, 'radial'],
]
const MOUSE: [button: number, of: number][] = [
  [6, RIGHT],
  [7, LEFT],
]

export class GamepadInput {
  private down = new Set<number>()
  private moved = false // the stick, since it was centred last

  constructor(
    private readonly controls: Pick<Controls, 'press' | 'lift' | 'pressButton' | 'releaseButton' | 'turn' | 'stick'>,
    private readonly events: PadEvents,
  ) {}

  /** Reads a gamepad; called once per frame. playing is false while a panel is open. dt is in seconds. */
  update({ axes, buttons }: PadState, playing: boolean, now: number, dt: number): void {
    const { controls, events } = this
    const before = this.down
    const down = new Set([...buttons.keys()].filter((i) => buttons[i]?.pressed || (buttons[i]?.value ?? 0) > TRIGGER))
    this.down = down
    const pressed = (button: number) => down.has(button) && !before.has(button)
    const released = (button: number) => !down.has(button) && before.has(button)
    const [right, back] = withDeadZone(axes[0] ?? 0, axes[1] ?? 0, DEAD)
    const [x, y] = withDeadZone(axes[2] ?? 0, axes[3] ?? 0, DEAD)
    const still = [right, back, x, y].every((axis) => axis === 0)
    if (still && down.size === 0 && before.size === 0) {
      if (this.moved) controls.stick = CENTRED
      this.moved = false
      return
    }
    events.used()
    for (const [button, action] of ACTIONS) if (released(button)) controls.lift(action)
    for (const [button, of] of MOUSE) if (released(button)) controls.releaseButton(of)
    if (!playing) {
      if (pressed(1) || pressed(9)) events.resumed()
      if (Math.hypot(right, back) > POINTS) events.pointed(right, back)
      if (pressed(0)) events.chosen()
      if (pressed(12) || (pressed(14) && !events.adjusted(-1))) events.focused(-1)
      if (pressed(13) || (pressed(15) && !events.adjusted(1))) events.focused(1)
      return
    }
    this.moved = true
    controls.stick = { forward: -back || 0, right, fast: false }
    // slow near the middle, for aiming
    controls.turn(x * Math.abs(x) * TURN * dt, y * Math.abs(y) * TURN * dt)
    for (const [button, of] of MOUSE) if (pressed(button)) controls.pressButton(of)
    for (const [button, action] of ACTIONS) if (pressed(button)) controls.press(action, now)
  }
}
