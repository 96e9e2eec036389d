// Moves the player's body by keys, mouse, fingers and sticks.

import { keysOf } from '../hud/help'
import type { Messages } from '../hud/messages'
import type { Controls } from '../input/controls'
import { type Body, type Intent } from '../player/body'
import type { Action } from '../settings/bindings'
import { texts } from '../text/texts'
import type { World } from '../world/world'
import type { Frame, System } from './frame-loop'
import type { Store } from './store'

const RADIANS_PER_PIXEL = 0.0023 // of mouse movement
const KEYS_TURN = 1.8 // radians/s, by keys
const MAX_PITCH = Math.PI / 2 - 0.01
const ZOOM = 3.5
const STEP = 0.05 // seconds: longer frames are simulated in several steps
const STILL: Intent = { forward: 0, right: 0, up: false, down: false, fast: false, autoJump: false }

export class Movement implements System {
  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly controls: Controls,
    private readonly messages: Messages,
    /** Reports whether the body may not go on from a position to where it is now. */
    private readonly keptOut: (from: { x: number; y: number; z: number }, body: Body) => boolean,
  ) {}

  update({ dt }: Frame): void {
    if (!this.store.inWorld) return
    const { body } = this
    const { right, up } = this.keysTurn(dt)
    this.look(body.yaw + right, body.pitch + up)
    if (this.store.screen === 'past' || !this.world.loaded(Math.floor(body.x), Math.floor(body.z))) return
    const { autoJump } = this.store.settings
    const intent = this.store.screen === 'play' ? { ...this.controls.intent(), autoJump } : STILL
    const { x, y, z } = body
    for (let left = dt; left > 1e-6; left -= STEP) body.step(this.world, intent, Math.min(STEP, left))
    if (this.keptOut({ x, y, z }, body)) body.place(x, y, z)
  }

  /** Returns the turn by keys, in radians. */
  private keysTurn(dt: number): { right: number; up: number } {
    const by = (action: Action) => (this.controls.performs(action) ? (KEYS_TURN * dt) / this.zoom : 0)
    return { right: by('lookRight') - by('lookLeft'), up: by('lookUp') - by('lookDown') }
  }

  /** Turns the camera as the mouse does, by so many pixels. */
  turn(x: number, y: number): void {
    const { body } = this
    const { sensitivity, invert } = this.store.settings
    const factor = (RADIANS_PER_PIXEL * sensitivity) / this.zoom
    this.look(body.yaw + x * factor, body.pitch + (invert ? y : -y) * factor)
  }

  look(yaw: number, pitch: number): void {
    this.body.yaw = yaw % (2 * Math.PI)
    this.body.pitch = Math.max(-MAX_PITCH, Math.min(MAX_PITCH, pitch))
  }

  /** The factor by which the field of view is divided. */
  get zoom(): number {
    return this.controls.performs('zoom') ? ZOOM : 1
  }

  toggleFlying(): void {
    this.body.flying = !this.body.flying
    if (this.body.flying) this.body.vy = 0
    this.messages.toast(this.body.flying ? keysOf(texts.flying, this.store.settings.bindings) : texts.walking)
  }
}
