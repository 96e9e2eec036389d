// Input devices other than keyboard and mouse. Their code is loaded when they are used first.

import type { Hud } from '../hud/hud'
import type { TouchControls } from '../hud/touch-controls'
import { moveFocus } from '../hud/focus'
import type { Controls } from '../input/controls'
import type { GamepadInput } from '../input/gamepad'
import type { InputKind, InputSwitch } from '../input/kind'
import type { TouchInput } from '../input/touch'
import type { BlockInteraction } from '../player/block-interaction'
import type { Frame, System } from './frame-loop'
import type { Screens } from './screens'
import type { Store } from './store'

const MIDDLE = [0, 0] as const

/** Returns the dialogs that are open, the uppermost last. */
function openDialogs(): HTMLDialogElement[] {
  return [...document.querySelectorAll<HTMLDialogElement>('dialog[open]')]
}

export class Devices implements System {
  private touch: Promise<void> | null = null
  private touchInput: TouchInput | null = null
  private touchControls: TouchControls | null = null
  private pads = 0 // connected
  private padInput: GamepadInput | null = null

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly store: Store,
    private readonly input: InputSwitch,
    private readonly controls: Controls,
    private readonly screens: Screens,
    private readonly scrolled: (steps: number) => void,
    private readonly interaction: Pick<BlockInteraction, 'sight' | 'updateAim'>,
    private readonly hud: Hud,
    /** Returns the mouse buttons that a tap and a finger that rests stand for now. */
    private readonly buttons: () => readonly [tap: number, hold: number],
  ) {
    window.addEventListener('gamepadconnected', () => {
      this.pads++
      void this.loadPad()
    })
    window.addEventListener('gamepaddisconnected', () => {
      this.pads--
      if (input.current === 'gamepad' && store.screen === 'play') screens.show('menu') // which releases what was held
    })
  }

  use(kind: InputKind): void {
    this.interaction.sight = kind === 'touch' ? null : MIDDLE
    if (kind !== 'mouse') this.controls.unlock()
    if (kind === 'touch') this.touch ??= this.loadTouch()
  }

  update({ now, dt }: Frame): void {
    this.touchInput?.update(now)
    this.touchControls?.update()
    if (this.pads === 0 || !this.padInput) return
    const pad = navigator.getGamepads().find((pad) => pad?.mapping === 'standard')
    if (pad) this.padInput.update(pad, this.store.screen === 'play', now, dt)
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
    this.touchControls = new TouchControls(controls)
    hud.addInWorld(this.touchControls.root)
  }

  private async loadPad(): Promise<void> {
    const { GamepadInput } = await import('../input/gamepad')
    const { store, input, screens, scrolled } = this
    this.padInput ??= new GamepadInput(this.controls, {
      used: () => input.use('gamepad'),
      scrolled,
      resumed: () => {
        const dialogs = openDialogs()
        if (dialogs.length > 1 || !store.inWorld) dialogs.at(-1)?.close()
        else void screens.resume()
      },
      focused: (steps) => moveFocus(openDialogs().at(-1) ?? document, steps),
      chosen: () => {
        if (document.activeElement instanceof HTMLElement) document.activeElement.click()
      },
    })
  }

  /** Returns the tangents of the angles between a point of the page and its middle. */
  private tangents(x: number, y: number): [right: number, up: number] {
    const { innerWidth, innerHeight } = window
    const scale = (2 * Math.tan((this.store.settings.fieldOfView * Math.PI) / 360)) / innerHeight
    return [(x - innerWidth / 2) * scale, (innerHeight / 2 - y) * scale]
  }
}
