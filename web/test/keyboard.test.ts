// Which part of the page gets a key.

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { listenToKeys } from '../src/game/keyboard'
import { Store } from '../src/game/store'
import { rebind } from '../src/settings/bindings'
import { defaults } from '../src/settings/settings'

const FIELD = { tagName: 'INPUT', type: 'text' }
const SLIDER = { tagName: 'INPUT', type: 'range' }

let store: Store
const input = { key: vi.fn() }
const controls = { keyDown: vi.fn(() => true), keyUp: vi.fn() }
const hud = { key: vi.fn(() => false) }
const screens = { resume: vi.fn() }

beforeEach(() => {
  vi.clearAllMocks()
  vi.stubGlobal('window', new EventTarget())
  store = new Store(defaults(false), { setItem: vi.fn() })
  listenToKeys({ store, input, controls, hud, screens })
})

afterEach(() => void vi.unstubAllGlobals())

/** Presses a key, and reports whether the browser does nothing else with it. */
function press(code: string, more: object = {}, target: object = {}): boolean {
  const event = Object.assign(new Event('keydown', { cancelable: true }), { code, key: '', repeat: false, ...more })
  Object.defineProperty(event, 'target', { value: target })
  return !window.dispatchEvent(event)
}

test('in the world the controls get a key, and not the panel that it opens as well', () => {
  store.screen = 'play'
  controls.keyDown.mockImplementationOnce(() => ((store.screen = 'blocks'), true))
  expect(press('KeyE')).toBe(true)
  expect(screens.resume).not.toHaveBeenCalled()
  press('KeyW', {}, FIELD) // a dialog is open above the world
  expect(controls.keyDown).toHaveBeenCalledOnce()
})

test('the key that has opened a panel closes it, also if it is Control and another one', () => {
  store.settings.bindings = rebind(store.settings.bindings, 'map', 'Control+KeyM')
  const closes = (screen: Store['screen'], code: string, more = {}, target = {}) => {
    store.screen = screen
    return press(code, more, target) && screens.resume.mock.calls.splice(0).length === 1
  }
  expect(closes('blocks', 'KeyE')).toBe(true)
  expect(closes('build', 'KeyB')).toBe(true)
  expect(closes('past', 'KeyL', {}, SLIDER)).toBe(true)
  expect(closes('map', 'KeyM', { key: 'm', ctrlKey: true })).toBe(true)
  expect(closes('map', 'KeyM')).toBe(false)
  expect(closes('blocks', 'KeyB')).toBe(false)
  expect(closes('blocks', 'KeyE', { repeat: true })).toBe(false)
  expect(closes('blocks', 'KeyE', {}, FIELD)).toBe(false)
  expect(closes('menu', 'KeyX')).toBe(false)
  expect(controls.keyDown).not.toHaveBeenCalled()
})

test('the button of the mouse that has opened a panel closes it, but not with the press that opens it', () => {
  store.settings.bindings = rebind(rebind(store.settings.bindings, 'blocks', 'Mouse3'), 'map', 'Mouse0')
  const press = (screen: Store['screen'], button: number) => {
    store.screen = screen
    window.dispatchEvent(Object.assign(new Event('mousedown'), { button }))
    return screens.resume.mock.calls.splice(0).length === 1
  }
  expect(press('blocks', 3)).toBe(true)
  expect(press('map', 0)).toBe(false) // it clicks on the map
  expect(press('blocks', 4)).toBe(false)
  expect(press('menu', 4)).toBe(false)
  window.addEventListener('mousedown', () => (store.screen = 'blocks'), { once: true }) // as the world does
  expect(press('play', 3)).toBe(false)
})

test('what is open uses a key first, and what nobody uses is left to the browser', () => {
  store.screen = 'blocks'
  hud.key.mockReturnValueOnce(true)
  expect(press('KeyE')).toBe(true)
  expect(screens.resume).not.toHaveBeenCalled()
  expect(press('Tab')).toBe(false)
  expect(input.key).toHaveBeenCalledTimes(2)
})
