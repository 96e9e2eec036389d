// Third person: the player sees their own figure, with the block in its hand, from behind or from the front. Loaded when it is
// used first.

import { multiply, translation } from '../gl/matrix'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { Avatars, OwnFigure } from '../render/avatars'
import type { Camera } from '../render/camera'
import { Figure } from '../render/figure'
import { cameraAround, handOf } from '../render/third-person'
import type { View } from '../render/view'
import type { World } from '../world/world'
import type { System } from './frame-loop'
import type { Store } from './store'

const MODES = ['first', 'behind', 'front'] as const
export type CameraMode = (typeof MODES)[number]

const TOO_NEAR = 0.8 // blocks: the camera would be inside the figure

export class ThirdPerson implements System {
  mode: CameraMode = 'first'
  private self: OwnFigure | null = null

  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Session,
    private readonly avatars: Avatars,
    private readonly view: View,
    private readonly hudRoot: HTMLElement,
  ) {}

  next(): void {
    this.set(MODES[(MODES.indexOf(this.mode) + 1) % MODES.length] ?? 'first')
  }

  /** Dresses the figure: the player has chosen a skin. */
  dress(): void {
    if (this.self) this.self.figure = new Figure(this.self.player)
  }

  update(): void {
    if (!this.store.inWorld && this.mode !== 'first') this.set('first')
    if (this.view.hand.swung === 0) this.self?.figure.swingArm()
  }

  /** Returns the camera, given the one at the player's eyes. */
  cameraFrom(eyes: Camera): Camera {
    if (!this.self) return eyes
    const camera = cameraAround(this.world, eyes, this.mode === 'front')
    const distance = Math.hypot(camera.x - eyes.x, camera.y - eyes.y, camera.z - eyes.z)
    this.avatars.self = distance < TOO_NEAR ? null : this.self
    return camera
  }

  /** Puts the block into the hand of the figure, which has its pose for this frame. */
  holdBlock(): void {
    const { self } = this.avatars
    const { hand, originX, originZ } = this.view
    hand.carried = self ? multiply(translation(originX, 0, originZ), handOf(self.figure)) : this.self && 'hidden'
  }

  private set(mode: CameraMode): void {
    this.mode = mode
    this.hudRoot.dataset.camera = mode
    const { welcome } = this.session
    if (mode === 'first' || !welcome) this.self = this.avatars.self = null
    else this.self ??= { player: welcome.player, figure: new Figure(welcome.player), body: this.body, litAt: 0 }
  }
}
