// Input devices other than keyboard and mouse. Their code is loaded when they are used first.

import type { Hud } from '../hud/hud'
import type { Controls } from '../input/controls'
import type { InputKind } from '../input/kind'
import type { TouchInput } from '../input/touch'
import type { BlockInteraction } from '../player/block-interaction'
import type { Settings } from '../settings/settings'
import type { Frame, System } from './frame-loop'

const MIDDLE = [0, 0] as const

export class Devices implements System {
  private touch: Promise<void> | null = null
  private touchInput: TouchInput | null = null

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly settings: Settings,
    private readonly controls: Controls,
    private readonly interaction: Pick<BlockInteraction, 'sight' | 'updateAim'>,
    private readonly hud: Hud,
    /** Returns the mouse buttons that a tap and a finger that rests stand for now. */
    private readonly buttons: () => readonly [tap: number, hold: number],
  ) {}

  use(kind: InputKind): void {
    this.interaction.sight = kind === 'touch' ? null : MIDDLE
    if (kind !== 'mouse') this.controls.unlock()
    if (kind === 'touch') this.touch ??= this.loadTouch()
  }

  update({ now }: Frame): void {
    this.touchInput?.update(now)
  }

  private async loadTouch(): Promise<void> {
    const [{ TouchInput }, { TouchControls }] = await Promise.all([
      import('../input/touch'),
      import('../hud/touch-controls'),
    ])
    const { canvas, controls, hud, interaction } = this
    this.touchInput = new TouchInput(canvas, controls, {
      pointed: (at) => {
        interaction.sight = at && this.tangents(at.x, at.y)
        interaction.updateAim()
      },
      buttons: this.buttons,
    })
    hud.addTouchControls(new TouchControls(controls))
  }

  /** Returns the tangents of the angles between a point of the page and its middle. */
  private tangents(x: number, y: number): [right: number, up: number] {
    const { innerWidth, innerHeight } = window
    const scale = (2 * Math.tan((this.settings.fieldOfView * Math.PI) / 360)) / innerHeight
    return [(x - innerWidth / 2) * scale, (innerHeight / 2 - y) * scale]
  }
}
