import { describe, expect, test } from 'vitest'
import { lockedKeys } from '../src/game/fullscreen'
import { keysOf } from '../src/hud/help'
import { ACTIONS, DEFAULTS, actionOf, bindingsFrom, codeOf, rebind } from '../src/settings/bindings'
import { defaults, loadSettings, saveSettings } from '../src/settings/settings'
import { enLater } from '../src/text/en-later'
import { en } from '../src/text/en'

const KEYS = [...Object.values(en.help), ...Object.values(enLater.help)]

describe('key bindings', () => {
  test('no key has two actions', () => {
    const codes = ACTIONS.flatMap((action) => [...DEFAULTS[action]] as string[])
    expect(new Set(codes).size).toBe(codes.length)
    for (const action of ACTIONS) for (const code of DEFAULTS[action]) expect(actionOf(DEFAULTS, code)).toBe(action)
    expect(actionOf(DEFAULTS, 'F9')).toBeNull()
  })

  test('Control and Command make another key of one', () => {
    const key = (more: object) => codeOf({ key: 'z', code: 'KeyZ', ...more } as KeyboardEvent)
    expect([key({}), key({ shiftKey: true }), key({ ctrlKey: true }), key({ metaKey: true, shiftKey: true })]).toEqual([
      'KeyZ',
      'KeyZ',
      'Control+KeyZ',
      'Control+Shift+KeyZ',
    ])
    expect(actionOf(DEFAULTS, key({ metaKey: true }))).toBe('undo')
    expect(actionOf(DEFAULTS, key({ code: 'KeyY', ctrlKey: true }))).toBe('undo') // a German keyboard
    expect(key({ key: '/', code: 'Digit7', shiftKey: true })).toBe('/')
    expect(['Control+KeyZ', 'Control+Shift+KeyZ', 'Digit7'].map(en.key)).toEqual(['Ctrl+Z', 'Ctrl+Shift+Z', '7'])
  })

  test('a key that is bound again leaves its old action', () => {
    const bindings = rebind(DEFAULTS, 'fly', 'KeyE')
    expect(actionOf(bindings, 'KeyE')).toBe('fly')
    expect(actionOf(bindings, 'KeyF')).toBeNull()
    expect(bindings.blocks).toEqual([])
    expect(DEFAULTS.blocks).toEqual(['KeyE'])
  })

  test('mouse and keyboard have keys of their own, and a mouse that could not be bound keeps its buttons', () => {
    const bindings = rebind(rebind(DEFAULTS, 'break', 'KeyO'), 'fly', 'Mouse2')
    expect([bindings.break, bindings.place, bindings.fly]).toEqual([['Mouse0', 'KeyO'], ['KeyX'], ['KeyF', 'Mouse2']])
    expect(rebind(bindings, 'fly', 'Mouse2').fly).toEqual(['KeyF', 'Mouse2'])
    expect(bindingsFrom(bindings)).toEqual(bindings)
    const older = { ...DEFAULTS, break: ['KeyO'], place: ['KeyX'], next: undefined, previous: undefined }
    expect(bindingsFrom(older)).toMatchObject({
      break: ['KeyO', 'Mouse0'],
      place: ['KeyX', 'Mouse2'],
      next: ['WheelDown'],
    })
  })

  test('in full screen the browser leaves to the page what Control could be held with, but no function keys', () => {
    const keys = lockedKeys(rebind(DEFAULTS, 'map', 'Control+Minus'))
    for (const code of ['Escape', 'KeyW', 'KeyZ', 'Minus', 'Tab', 'Digit1', 'Digit9', 'ArrowUp'])
      expect(keys).toContain(code)
    expect(keys.filter((code) => /^F|Mouse|Wheel|[^A-Za-z0-9]/.test(code))).toEqual([])
  })

  test('Control alone is a key', () => {
    const control = { key: 'Control', code: 'ControlLeft', ctrlKey: true } as KeyboardEvent
    expect(codeOf(control)).toBe('ControlLeft')
  })

  test('Escape always opens the menu', () => {
    expect(rebind(DEFAULTS, 'fly', 'Escape')).toBe(DEFAULTS)
    expect(actionOf(bindingsFrom({ menu: [] }), 'Escape')).toBe('menu')
  })

  test('they are kept, and what is invalid gets its default', () => {
    let stored = ''
    const settings = { ...defaults(false), invert: true, bindings: rebind(DEFAULTS, 'jump', 'KeyJ') }
    saveSettings({ setItem: (_key, value) => (stored = value) }, settings)
    const loaded = loadSettings({ getItem: () => stored }, defaults(false))
    expect(loaded.invert).toBe(true)
    expect(loaded.bindings).toEqual(settings.bindings)
    for (const broken of [null, 7, 'x', { jump: 'KeyJ', fly: [3], map: Array.from({ length: 99 }, () => 'KeyM') }])
      expect(bindingsFrom(broken)).toEqual(DEFAULTS)
  })

  test('the help has a line for every key', () => {
    for (const action of ACTIONS.filter((action) => action !== 'command' && !/^look/.test(action)))
      expect(KEYS.filter(([keys]) => keys.includes(`{${action}}`)).length, action).toBeGreaterThan(0)
    expect(keysOf('{sink}', DEFAULTS)).toBe('Shift')
    expect(KEYS.slice(0, 5).map(([keys]) => keysOf(keys, DEFAULTS))).toEqual([
      'W A S D',
      'Mouse, arrow keys',
      'Space',
      'F, Space Space',
      'Left click / Q, Right click / X',
    ])
  })

  test('the help shows the keys that the player has chosen', () => {
    const bindings = { ...rebind(rebind(DEFAULTS, 'jump', 'KeyW'), 'lookUp', 'Digit8'), sink: ['ControlRight'] }
    const help = KEYS.map(([keys]) => keysOf(keys, bindings))
    expect(help).toContain('no key A S D')
    expect(help).toContain('Mouse, 8 Left arrow Down arrow Right arrow')
    expect(help).toContain('F, W W')
    expect(help).toContain('Control')
    const mouse = rebind(rebind(DEFAULTS, 'place', 'Mouse1'), 'next', 'KeyO')
    expect(keysOf('{place}, {pick}, {next}', mouse)).toBe('Middle click / X, P, Wheel Down / O')
    expect(JSON.stringify([en, enLater])).not.toMatch(/right click|middle click|left click to|the wheel/i)
  })
})
