// The hints for newcomers: ticks off what they have done, until they have done all of it or hide the hints.

import { Hints, STEPS, type Step } from '../hud/hints'
import type { InputSwitch } from '../input/kind'
import type { Body } from '../player/body'
import type { Frame, System } from './frame-loop'
import type { Store } from './store'

/** How far a newcomer has to turn, in radians, and to walk, in blocks. */
const TURN = 0.8
const WALK = 3
/** How long the last words are shown, in seconds. */
const FAREWELL = 5

export class HintControl implements System {
  private readonly hints: Hints
  private readonly done = new Set<Step>()
  private yaw: number
  private pitch: number
  private turned = 0 // radians
  private walked = 0 // blocks
  private farewell = 0 // seconds since the last hint was ticked off

  constructor(
    private readonly store: Store,
    private readonly body: Body,
    private readonly input: Pick<InputSwitch, 'current'>,
    parent: HTMLElement,
  ) {
    this.yaw = body.yaw
    this.pitch = body.pitch
    this.hints = new Hints(() => this.end())
    parent.append(this.hints.root)
  }

  /** Ticks off a hint: the player has done what it says. */
  tick(step: Step): void {
    if (!this.store.settings.hints || this.done.has(step)) return
    this.done.add(step)
    performance.mark(`hint: ${step}`)
  }

  /** Hides the hints, on this device for good. */
  end(): void {
    this.store.settings.hints = false
    this.store.save()
  }

  update({ dt }: Frame): void {
    const { store, body } = this
    if (store.screen === 'play') {
      this.turned += Math.abs(Math.sin((body.yaw - this.yaw) / 2)) * 2 + Math.abs(body.pitch - this.pitch)
      this.walked += Math.hypot(body.vx, body.vz) * dt
    }
    this.yaw = body.yaw
    this.pitch = body.pitch
    if (this.turned > TURN) this.tick('look')
    if (this.walked > WALK) this.tick('walk')
    if (this.done.size === STEPS.length) {
      this.farewell += dt
      if (this.farewell > FAREWELL) {
        this.end()
        this.restart()
      }
    }
    this.hints.show(store.settings.hints, this.input.current, store.settings.bindings, this.done)
  }

  /** Prepares for a player who wants to see the hints again. */
  private restart(): void {
    this.done.clear()
    this.turned = this.walked = this.farewell = 0
  }
}
