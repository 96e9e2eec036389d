import { beforeEach, expect, test, vi } from 'vitest'
import { GamepadInput } from '../src/input/gamepad'
import { CENTRED } from '../src/input/stick'

const controls = {
  press: vi.fn(),
  lift: vi.fn(),
  pressButton: vi.fn(),
  releaseButton: vi.fn(),
  turn: vi.fn(),
  stick: CENTRED,
}
const events = {
  used: vi.fn(),
  resumed: vi.fn(),
  focused: vi.fn(),
  adjusted: vi.fn(() => false),
  pointed: vi.fn(),
  chosen: vi.fn(),
}
let pad: GamepadInput

function update(axes: number[], held: number[] = [], playing = true): void {
  const buttons = Array.from({ length: 17 }, (_, i) => ({ pressed: held.includes(i), value: Number(held.includes(i)) }))
  pad.update({ axes, buttons }, playing, 0, 0.1)
}

beforeEach(() => {
  vi.clearAllMocks()
  controls.stick = CENTRED
  pad = new GamepadInput(controls, events)
})

test('a gamepad that lies still is not in use, and leaves the sticks of others alone', () => {
  controls.stick = { forward: 1, right: 0, fast: false }
  update([0.05, -0.05, 0, 0.1])
  expect(events.used).not.toHaveBeenCalled()
  expect(controls.stick.forward).toBe(1)
})

test('the left stick walks until it is let go, the right one turns', () => {
  update([0, -1, 1, 0])
  expect(controls.stick).toEqual({ forward: 1, right: 0, fast: false })
  expect(controls.turn.mock.calls[0]![0]).toBeCloseTo(110)
  update([0, 0, 0, 0])
  expect(controls.stick).toEqual(CENTRED)
})

test('triggers break and place as long as they are held, bumpers choose, buttons act once', () => {
  update([0, 0, 0, 0], [7, 0, 5])
  update([0, 0, 0, 0], [7, 0, 5])
  expect(controls.pressButton.mock.calls).toEqual([[0]])
  expect(controls.press.mock.calls).toEqual([
    ['jump', 0],
    ['next', 0],
  ])
  expect(controls.releaseButton).not.toHaveBeenCalled()
  update([0, 0, 0, 0])
  expect(controls.releaseButton.mock.calls).toEqual([[0]])
  expect(controls.lift.mock.calls).toEqual([['jump'], ['next']])
})

test('the cross opens the building tools to the left, and a circle of actions to the right', () => {
  for (const button of [14, 15]) {
    update([0, 0, 0, 0], [button])
    update([0, 0, 0, 0])
  }
  expect(controls.press.mock.calls).toEqual([
    ['build', 0],
    ['radial', 0],
  ])
  expect(events.focused).not.toHaveBeenCalled()
})

test('in a panel, the cross moves the focus, A presses, and B or start close', () => {
  for (const button of [13, 12, 0, 1, 9]) {
    update([0, 1, 0, 0], [button], false)
    update([0, 1, 0, 0], [], false)
  }
  expect(events.focused.mock.calls).toEqual([[1], [-1]])
  expect(events.chosen).toHaveBeenCalledOnce()
  expect(events.resumed).toHaveBeenCalledTimes(2)
  expect(controls.press).not.toHaveBeenCalled()
  expect(controls.stick).toEqual(CENTRED)
})

test('left and right move a slider that has the focus, and else the focus', () => {
  events.adjusted.mockReturnValueOnce(true)
  for (const button of [15, 15, 14]) {
    update([0, 0, 0, 0], [button], false)
    update([0, 0, 0, 0], [], false)
  }
  expect(events.adjusted.mock.calls).toEqual([[1], [1], [-1]])
  expect(events.focused.mock.calls).toEqual([[1], [-1]])
})

test('a stick that is pushed far points somewhere in a panel', () => {
  update([0.3, 0, 0, 0], [], false)
  update([0, -1, 0, 0], [], false)
  update([0, -1, 0, 0])
  expect(events.pointed.mock.calls).toEqual([[0, -1]])
})
