import { afterEach, expect, test, vi } from 'vitest'
import { Devices } from '../src/game/devices'
import { Store } from '../src/game/store'
import { InputSwitch, type InputKind } from '../src/input/kind'
import { defaults } from '../src/settings/settings'

afterEach(() => {
  vi.unstubAllGlobals()
})

test.each<[InputKind, string[]]>([
  ['gamepad', ['menu']], // opening it releases what was held
  ['mouse', []], // the gamepad lay beside it
])('a gamepad is lost while the player uses the %s', (kind, shown) => {
  const window = new EventTarget()
  vi.stubGlobal('window', window)
  vi.stubGlobal('document', { documentElement: { dataset: {} } })
  const store = new Store(defaults(false), { setItem: vi.fn() })
  const input = new InputSwitch(vi.fn())
  input.use(kind)
  const show = vi.fn()
  const parts = [{}, store, input, {}, { show }, vi.fn(), { sight: null }, {}, vi.fn()]
  new Devices(...(parts as unknown as ConstructorParameters<typeof Devices>))
  window.dispatchEvent(new Event('gamepadconnected'))
  window.dispatchEvent(new Event('gamepaddisconnected')) // on the title
  expect(show).not.toHaveBeenCalled()
  store.screen = 'play'
  window.dispatchEvent(new Event('gamepadconnected'))
  window.dispatchEvent(new Event('gamepaddisconnected'))
  expect(show.mock.calls.flat()).toEqual(shown)
})
