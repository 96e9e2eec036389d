// The kind of input that the player uses now. It changes by use: the page shows touch controls from the first touch, and hides
// them when a mouse moves or a key is pressed. Style sheets read it from the attribute data-input of the page.

export type InputKind = 'mouse' | 'touch' | 'gamepad'

export class InputSwitch {
  private kind: InputKind = 'mouse'

  constructor(private readonly changed: (kind: InputKind) => void) {}

  start(): void {
    window.addEventListener('pointerdown', (event) => this.pointer(event), true)
    window.addEventListener('pointermove', (event) => this.pointer(event), true)
    this.use(window.matchMedia('(pointer: coarse) and (not (any-pointer: fine))').matches ? 'touch' : 'mouse')
  }

  get current(): InputKind {
    return this.kind
  }

  key({ code, target }: KeyboardEvent): void {
    // a keyboard on the screen types into fields, and has no codes
    if (code !== '' && !(target instanceof HTMLInputElement)) this.use('mouse')
  }

  use(kind: InputKind): void {
    document.documentElement.dataset.input = kind
    if (kind === this.kind) return
    this.kind = kind
    this.changed(kind)
  }

  private pointer({ type, pointerType, movementX, movementY }: PointerEvent): void {
    if (pointerType !== 'mouse') this.use('touch')
    else if (type === 'pointerdown' || movementX !== 0 || movementY !== 0) this.use('mouse')
  }
}
