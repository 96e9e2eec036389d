// Pointer lock, as browsers have it: with a promise (Chromium), and without (others, which report by events only).

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Controls } from '../src/input/controls'
import { InputSwitch } from '../src/input/kind'
import { DEFAULTS, rebind, type Bindings } from '../src/settings/bindings'

class Page extends EventTarget {
  pointerLockElement: unknown = null
  exitPointerLock = vi.fn()
}

let page: Page
const requestPointerLock = vi.fn<() => Promise<void> | undefined>()
let controls: Controls
const events = {
  acted: vi.fn(),
  slotChosen: vi.fn(),
  jumpPressedTwice: vi.fn(),
  clicked: vi.fn(),
  turned: vi.fn(),
  pointerReleased: vi.fn(),
}
let target: HTMLElement
let bindings: Bindings

beforeEach(() => {
  vi.clearAllMocks()
  bindings = DEFAULTS
  page = new Page()
  vi.stubGlobal('window', Object.assign(new EventTarget(), { setTimeout }))
  vi.stubGlobal('document', page)
  requestPointerLock.mockReset()
  target = Object.assign(new EventTarget(), { requestPointerLock }) as unknown as HTMLElement
  controls = new Controls(target, new InputSwitch(vi.fn()), () => bindings, events)
})

afterEach(() => {
  vi.unstubAllGlobals()
})

function answer(locked: boolean): void {
  page.pointerLockElement = locked ? target : null
  page.dispatchEvent(new Event(locked ? 'pointerlockchange' : 'pointerlockerror'))
}

/** Moves the mouse, and reports whether the camera turned. */
function turns(): boolean {
  window.dispatchEvent(Object.assign(new Event('mousemove'), { movementX: 5, movementY: 0, buttons: 0 }))
  return events.turned.mock.calls.splice(0).length > 0
}

function click(): void {
  target.dispatchEvent(Object.assign(new Event('mousedown'), { button: 0 }))
}

const BROWSERS: [string, (locked: boolean) => Promise<void> | undefined][] = [
  [
    'with promises',
    (locked) => {
      if (!locked) return Promise.reject(new DOMException('no click', 'NotAllowedError'))
      answer(true)
      return Promise.resolve()
    },
  ],
  [
    'without promises',
    (locked) => {
      queueMicrotask(() => queueMicrotask(() => answer(locked)))
      return undefined
    },
  ],
]

describe.each(BROWSERS)('in a browser %s', (_, respond) => {
  test('the mouse turns the camera and clicks once the pointer is locked', async () => {
    requestPointerLock.mockImplementation(() => respond(true))
    expect(await controls.capture()).toBe(true)
    expect(turns()).toBe(true)
    click()
    expect(events.clicked.mock.calls).toEqual([[0]])
    expect(await controls.capture()).toBe(true)
    expect(requestPointerLock).toHaveBeenCalledTimes(1)
  })

  test('a refused lock is reported, and a click asks again instead of breaking a block', async () => {
    requestPointerLock.mockImplementation(() => respond(false))
    expect(await controls.capture()).toBe(false)
    expect(turns()).toBe(false)
    requestPointerLock.mockImplementation(() => respond(true))
    click()
    await vi.waitFor(() => expect(turns()).toBe(true))
    expect(events.clicked).not.toHaveBeenCalled()
    click()
    expect(events.clicked.mock.calls).toEqual([[0]])
    page.pointerLockElement = null // Escape
    page.dispatchEvent(new Event('pointerlockchange'))
    expect(events.pointerReleased).toHaveBeenCalledTimes(1)
  })
})

test('a click is at what the player has turned to, also before the next frame', async () => {
  requestPointerLock.mockRejectedValue(new TypeError('requestPointerLock is not a function'))
  await controls.capture()
  const done: string[] = []
  events.turned.mockImplementationOnce((x, y) => done.push(`turned ${x} ${y}`))
  events.clicked.mockImplementationOnce((button) => done.push(`clicked ${button}`))
  controls.turn(7, 5)
  click()
  expect(done).toEqual(['turned 7 5', 'clicked 0'])
})

test('a browser without pointer lock turns the camera while a button is held', async () => {
  requestPointerLock.mockRejectedValue(new TypeError('requestPointerLock is not a function'))
  expect(await controls.capture()).toBe(true)
  click()
  expect(events.clicked.mock.calls).toEqual([[0]])
})

test('keys whose release macOS does not report, because Command is held, are released with Command', () => {
  void controls.capture()
  for (const code of ['KeyW', 'MetaLeft']) controls.keyDown({ code, key: code } as KeyboardEvent)
  expect(controls.intent().forward).toBe(1)
  controls.keyUp('MetaLeft')
  expect(controls.intent().forward).toBe(0)
})

test('buttons and the wheel of the mouse do what they are bound to', async () => {
  requestPointerLock.mockImplementation(() => {
    answer(true)
    return Promise.resolve()
  })
  bindings = rebind(rebind(bindings, 'jump', 'Mouse3'), 'zoom', 'WheelUp')
  await controls.capture()
  const mouse = (type: string, button: number) =>
    (type === 'mousedown' ? target : window).dispatchEvent(Object.assign(new Event(type), { button }))
  mouse('mousedown', 3)
  expect(controls.intent().up).toBe(true)
  mouse('mouseup', 3)
  expect(controls.intent().up).toBe(false)
  mouse('mousedown', 2)
  expect([events.clicked.mock.calls, controls.holds(2)]).toEqual([[[2]], true])
  mouse('mouseup', 2)
  expect(controls.holds(2)).toBe(false)
  window.dispatchEvent(Object.assign(new Event('wheel'), { deltaY: 100, deltaMode: 0 }))
  window.dispatchEvent(Object.assign(new Event('wheel'), { deltaY: -100, deltaMode: 0 }))
  expect(events.acted.mock.calls.flat()).toEqual(['jump', 'next', 'zoom'])
})

test('a button of the thumb turns no page of the browser, also where its press has opened a panel', () => {
  void controls.capture()
  const released = (button: number) => {
    const event = Object.assign(new Event('mouseup', { cancelable: true }), { button })
    window.dispatchEvent(event)
    return event.defaultPrevented
  }
  expect([released(0), released(3)]).toEqual([true, true])
  controls.release()
  expect([released(0), released(3), released(4)]).toEqual([false, true, true])
})

test('the wheel does not zoom the page in the world, and scrolls panels', () => {
  const listen = vi.spyOn(window, 'addEventListener')
  controls = new Controls(target, new InputSwitch(vi.fn()), () => bindings, events)
  expect(listen).toHaveBeenCalledWith('wheel', expect.anything(), { passive: false })
  const taken = () => {
    const event = Object.assign(new Event('wheel', { cancelable: true }), { deltaY: 1, deltaMode: 0 })
    window.dispatchEvent(event)
    return event.defaultPrevented
  }
  expect(taken()).toBe(false)
  void controls.capture()
  expect(taken()).toBe(true)
})

test('a button of the mouse stays held when the wheel or a key does the same, and when Command is released', async () => {
  vi.useFakeTimers()
  requestPointerLock.mockImplementation(() => {
    answer(true)
    return Promise.resolve()
  })
  vi.stubGlobal('window', Object.assign(new EventTarget(), { setTimeout }))
  controls = new Controls(target, new InputSwitch(vi.fn()), () => bindings, events)
  bindings = { ...bindings, break: ['Mouse0', 'WheelUp', 'KeyQ'], previous: [] }
  await controls.capture()
  click()
  window.dispatchEvent(Object.assign(new Event('wheel'), { deltaY: -100, deltaMode: 0 }))
  vi.runAllTimers()
  vi.useRealTimers()
  expect([events.clicked.mock.calls, controls.holds(0)]).toEqual([[[0], [0]], true])
  controls.keyDown({ code: 'KeyQ', key: 'q' } as KeyboardEvent)
  controls.keyUp('KeyQ')
  controls.keyUp('MetaLeft')
  expect(controls.holds(0)).toBe(true)
  window.dispatchEvent(Object.assign(new Event('mouseup'), { button: 0 }))
  expect(controls.holds(0)).toBe(false)
})

test('who sneaks with Control also walks, and undoes', () => {
  bindings = rebind(bindings, 'sink', 'ControlLeft')
  void controls.capture()
  const press = (code: string, ctrlKey: boolean) =>
    controls.keyDown({ code, key: code.slice(-1).toLowerCase(), ctrlKey } as KeyboardEvent)
  expect(press('KeyS', true)).toBe(false) // the browser's own, with the other Control
  expect(press('ControlLeft', true)).toBe(true)
  expect(press('KeyW', true)).toBe(true)
  expect(press('KeyZ', true)).toBe(true)
  expect(controls.intent()).toMatchObject({ forward: 1, down: true })
  expect(events.acted.mock.calls.flat()).toEqual(['sink', 'forward', 'undo'])
})
