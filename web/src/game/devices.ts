// Input devices other than keyboard and mouse. Their code is loaded when they are used first.

import type { Hud } from '../hud/hud'
import type { Controls } from '../input/controls'
import type { InputKind, InputSwitch } from '../input/kind'
import type { BlockInteraction } from '../player/block-interaction'
import type { Frame, System } from './frame-loop'
import { LazySystem } from './lazy'
import type { Screens } from './screens'
import type { Store } from './store'

const MIDDLE = [0, 0] as const

export interface DeviceOptions {
  canvas: HTMLCanvasElement
  store: Store
  input: InputSwitch
  controls: Controls
  screens: Screens
  interaction: Pick<BlockInteraction, 'sight' | 'updateAim'>
  hud: Hud
  /** Returns the mouse buttons that a tap and a finger that rests stand for now. */
  buttons: () => readonly [tap: number, hold: number]
  partMissing: () => void
}

export class Devices implements System {
  private readonly touch: LazySystem<System>
  private readonly pad: LazySystem<System>

  constructor(private readonly options: DeviceOptions) {
    const { store, input, controls, screens, partMissing } = options
    this.touch = new LazySystem(() => this.loadTouch(), partMissing)
    this.pad = new LazySystem(
      () => import('./gamepad-control').then(({ createGamepad }) => createGamepad(store, input, controls, screens)),
      partMissing,
    )
    // a gamepad whose button was pressed while the page loaded has no event any more
    if ('getGamepads' in navigator && navigator.getGamepads().some(Boolean)) this.pad.use()
    window.addEventListener('gamepadconnected', () => this.pad.use())
    window.addEventListener('gamepaddisconnected', () => {
      if (input.current === 'gamepad' && store.screen === 'play') screens.show('menu') // which releases what was held
    })
  }

  use(kind: InputKind): void {
    this.options.interaction.sight = kind === 'touch' ? null : MIDDLE
    if (kind !== 'mouse') this.options.controls.unlock()
    if (kind === 'touch') this.touch.use()
  }

  update(frame: Frame): void {
    this.touch.update(frame)
    this.pad.update(frame)
  }

  private async loadTouch(): Promise<System> {
    const [{ TouchInput }, { TouchControls }] = await Promise.all([
      import('../input/touch'),
      import('../hud/touch-controls'),
    ])
    const { canvas, controls, hud, interaction, buttons } = this.options
    const touchInput = new TouchInput(canvas, controls, {
      pointed: (at) => {
        interaction.sight = at && this.tangents(at.x, at.y)
        interaction.updateAim()
      },
      buttons,
    })
    const touchControls = new TouchControls(controls)
    hud.addInWorld(touchControls.root)
    return {
      update({ now }) {
        touchInput.update(now)
        touchControls.update()
      },
    }
  }

  /** Returns the tangents of the angles between a point of the page and its middle. */
  private tangents(x: number, y: number): [right: number, up: number] {
    const { innerWidth, innerHeight } = window
    const scale = (2 * Math.tan((this.options.store.settings.fieldOfView * Math.PI) / 360)) / innerHeight
    return [(x - innerWidth / 2) * scale, (innerHeight / 2 - y) * scale]
  }
}
