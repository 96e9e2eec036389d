import { afterEach, expect, test, vi } from 'vitest'
import { Devices, type DeviceOptions } from '../src/game/devices'
import { Store } from '../src/game/store'
import { InputSwitch, type InputKind } from '../src/input/kind'
import { defaults } from '../src/settings/settings'

afterEach(() => {
  vi.unstubAllGlobals()
})

/** Builds the devices of a page. */
function setup(kind: InputKind, navigator = {}) {
  vi.stubGlobal('navigator', navigator)
  vi.stubGlobal('window', new EventTarget())
  vi.stubGlobal('document', { documentElement: { dataset: {} } })
  const store = new Store(defaults(false), { setItem: vi.fn() })
  const input = new InputSwitch(vi.fn())
  input.use(kind)
  const show = vi.fn()
  const options = { store, input, screens: { show }, interaction: { sight: null }, partMissing: vi.fn() }
  return { store, input, show, devices: new Devices(options as unknown as DeviceOptions) }
}

test.each<[InputKind, string[]]>([
  ['gamepad', ['menu']], // opening it releases what was held
  ['mouse', []], // the gamepad lay beside it
])('a gamepad is lost while the player uses the %s', (kind, shown) => {
  const { store, show } = setup(kind)
  window.dispatchEvent(new Event('gamepadconnected'))
  window.dispatchEvent(new Event('gamepaddisconnected')) // on the title
  expect(show).not.toHaveBeenCalled()
  store.screen = 'play'
  window.dispatchEvent(new Event('gamepadconnected'))
  window.dispatchEvent(new Event('gamepaddisconnected'))
  expect(show.mock.calls.flat()).toEqual(shown)
})

test('a gamepad that reported itself before the game was loaded is used', async () => {
  const pad = { mapping: 'standard', axes: [0, 0, 0, 0], buttons: [] }
  const { devices, input } = setup('mouse', { getGamepads: () => [null, pad] })
  const frame = { now: 0, dt: 0.016 }
  pad.axes = [0, 0, 0.5, 0]
  await vi.waitFor(() => {
    devices.update(frame)
    expect(input.current).toBe('gamepad')
  })
})
