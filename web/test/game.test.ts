import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FrameCounter, FrameLoop, type Frame } from '../src/game/frame-loop'
import { HotbarControl } from '../src/game/hotbar-control'
import { Store } from '../src/game/store'
import { defaults } from '../src/settings/settings'

const GRASS = 2
const BEDROCK = 15
const BRICK = 19
const LAMP = 20
const ICE = 21

describe('hotbar control', () => {
  const setup = () => {
    const store = new Store(defaults(false), { setItem: vi.fn() })
    const hotbar = { show: vi.fn(), addGift: vi.fn() }
    const hand = { hold: vi.fn() }
    return { store, hotbar, hand, control: new HotbarControl(store, hotbar, hand) }
  }

  test('picking a block selects its slot, or puts it into the selected one', () => {
    const { store, hand, control } = setup()
    control.pick(BRICK)
    expect([store.slot, store.selectedBlock]).toEqual([6, BRICK])
    control.pick(ICE)
    expect([store.slot, store.selectedBlock]).toEqual([6, ICE])
    control.pick(BEDROCK) // cannot be placed
    expect(store.selectedBlock).toBe(ICE)
    expect(hand.hold).toHaveBeenLastCalledWith(ICE)
  })

  test('the wheel goes around', () => {
    const { store, control } = setup()
    control.select(store.slotAfter(-1))
    expect(store.slot).toBe(8)
    expect(store.slotAfter(1)).toBe(0)
  })

  test('a gift never replaces the selected block', () => {
    const { store, hotbar, control } = setup()
    control.receive(LAMP, 3) // in the hotbar already
    expect(store.settings.hotbar).toEqual(defaults(false).hotbar)
    expect(hotbar.addGift).toHaveBeenLastCalledWith(LAMP, 3)
    control.receive(ICE, 1)
    expect(store.settings.hotbar[8]).toBe(ICE)
    control.select(8)
    control.receive(BRICK + 3, 1) // snowy grass
    expect([store.settings.hotbar[7], store.selectedBlock]).toEqual([BRICK + 3, ICE])
    control.receive(9999, 1) // unknown
    expect(hotbar.addGift).toHaveBeenCalledTimes(3)
    expect(store.settings.hotbar[0]).toBe(GRASS)
  })
})

describe('frame loop', () => {
  let next: ((now: number) => void) | undefined
  beforeEach(() => vi.stubGlobal('requestAnimationFrame', (run: (now: number) => void) => (next = run)))
  afterEach(() => void vi.unstubAllGlobals())

  test('updates the systems in order, with the time since the last frame, at most a quarter of a second', () => {
    const calls: string[] = []
    const frames: Frame[] = []
    const counter = new FrameCounter()
    const first = { update: (frame: Frame) => void (calls.push('first'), frames.push(frame)) }
    const second = { update: () => void calls.push('second') }
    new FrameLoop([counter, first, second]).start()
    for (const now of [1000, 1020, 5000, 4990]) next?.(now)
    expect(calls.slice(0, 4)).toEqual(['first', 'second', 'first', 'second'])
    expect(frames.map(({ dt }) => dt)).toEqual([0.25, 0.02, 0.25, 0])
    expect(counter.frames).toBe(4)
  })
})
