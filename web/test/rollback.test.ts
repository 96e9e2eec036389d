import { afterEach, describe, expect, test, vi } from 'vitest'
import { InspectControl } from '../src/game/inspect-control'
import { RollbackControl } from '../src/game/rollback-control'
import { columnsOf, frameOf } from '../src/hud/rollback-dialog'
import { decode, type RollbackPreview } from '../src/net/protocol'
import { LEFT, MIDDLE, RIGHT } from '../src/player/block-interaction'
import { defaults } from '../src/settings/settings'
import type { Hit } from '../src/player/ray'

describe('inspecting', () => {
  afterEach(() => void vi.unstubAllGlobals())

  const setup = () => {
    vi.stubGlobal('document', { documentElement: { dataset: { input: 'mouse' } } }) // the note names its buttons
    const store = { inWorld: true, settings: defaults(false) }
    const session = { sendCommand: vi.fn() }
    const interaction = {
      aim: { x: 3, y: 60, z: -8, normal: [0, 0, 1], distance: 2 } as Hit | null,
      updateAim: vi.fn(),
    }
    const hud = { claimLine: { setHint: vi.fn() }, messages: { toast: vi.fn() } }
    return { store, session, interaction, hud, inspect: new InspectControl(store, session, interaction, hud) }
  }

  test('clicks ask about the block aimed at, or the place in front of it', () => {
    const { session, hud, inspect } = setup()
    expect(inspect.click(LEFT, 0)).toBe(false)
    inspect.toggle()
    expect(inspect.on).toBe(true)
    expect(hud.claimLine.setHint).toHaveBeenLastCalledWith(expect.stringContaining('Inspecting'), expect.any(String))
    expect(inspect.click(LEFT, 0)).toBe(true)
    expect(inspect.click(RIGHT, 1000)).toBe(true)
    expect(session.sendCommand.mock.calls).toEqual([['inspect 3,60,-8'], ['inspect 3,60,-7']])
    expect(inspect.click(MIDDLE, 2000)).toBe(false) // picks the block
    inspect.toggle()
    expect(hud.claimLine.setHint).toHaveBeenLastCalledWith(null)
    expect(inspect.click(LEFT, 3000)).toBe(false)
    expect(session.sendCommand).toHaveBeenCalledTimes(2)
  })

  test('no more is asked than the server answers', () => {
    const { session, interaction, hud, inspect } = setup()
    inspect.toggle()
    for (let now = 0; now < 3000; now += 100) expect(inspect.click(LEFT, now)).toBe(true)
    expect(session.sendCommand).toHaveBeenCalledTimes(3)
    interaction.aim = null
    expect(inspect.click(LEFT, 9000)).toBe(true)
    expect(session.sendCommand).toHaveBeenCalledTimes(3)
    expect(hud.messages.toast).toHaveBeenLastCalledWith('Aim at a block.')
  })

  test('it ends when the player leaves the world', () => {
    const { store, inspect } = setup()
    inspect.toggle()
    inspect.update()
    expect(inspect.on).toBe(true)
    store.inWorld = false
    inspect.update()
    expect(inspect.on).toBe(false)
  })
})

describe('a preview of a rollback', () => {
  test('has the columns of its bits, in JSON and in bytes', () => {
    const bits = new Uint8Array(128)
    bits[0] = 0b1000_0001
    bits[127] = 0b1000_0000
    const columns = [
      [32, -64],
      [39, -64],
      [63, -33],
    ]
    expect(columnsOf([{ x: 1, z: -2, bits }])).toEqual(columns)
    expect(columnsOf([{ x: 1, z: -2, bits: btoa(String.fromCharCode(...bits)) }])).toEqual(columns)
  })

  test('is framed in the middle, with a margin', () => {
    for (const [min, max] of [
      [
        [-50, 0, 7],
        [50, 99, 107],
      ],
      [
        [3, 0, 3],
        [3, 0, 3],
      ],
      [
        [-2000, 0, 0],
        [1000, 99, 10],
      ],
    ] as const) {
      const { x, z, scale } = frameOf({ min, max }, 640)
      const [left, right] = [(min[0] - x) * scale, (max[0] + 1 - x) * scale]
      const [top, bottom] = [(min[2] - z) * scale, (max[2] + 1 - z) * scale]
      expect(Math.min(left, top)).toBeGreaterThan(0)
      expect(Math.max(right, bottom)).toBeLessThan(640)
      expect(Math.abs(left + right - 640)).toBeLessThanOrEqual(scale)
      expect(Math.abs(top + bottom - 640)).toBeLessThanOrEqual(scale)
      expect([x, z].every(Number.isInteger)).toBe(true)
    }
  })

  const setup = () => {
    const store = { screen: 'chat', inWorld: true }
    const session = { sendCommand: vi.fn(), connection: { url: 'ws://localhost/ws' } }
    const screens = { show: vi.fn((screen: string) => (store.screen = screen)), resume: vi.fn(() => Promise.resolve()) }
    const dialog = { ask: vi.fn(), draw: vi.fn() }
    const parts = [store, {}, {}, session, screens, dialog] as unknown as ConstructorParameters<typeof RollbackControl>
    return { store, session, screens, dialog, control: new RollbackControl(...parts) }
  }
  const text =
    '{"type":"rollback","command":"revert eve 5 0,1,2 3,4,5","of":"eve","blocks":7,"min":[0,1,2],"max":[3,4,5]}'
  const preview = decode(text) as RollbackPreview
  const frame = (now: number) => ({ now }) as Parameters<RollbackControl['update']>[0]

  test('is shown once no other panel is open, and ordered if the player agrees', () => {
    const { store, session, screens, dialog, control } = setup()
    control.propose(preview)
    control.update(frame(1000))
    expect(screens.show).not.toHaveBeenCalled()
    store.screen = 'play'
    control.update(frame(1100))
    control.update(frame(1150))
    control.update(frame(1400))
    expect(screens.show.mock.calls).toEqual([['rollback']])
    expect(dialog.ask).toHaveBeenCalledTimes(1)
    expect(dialog.draw).toHaveBeenCalledTimes(2)
    control.confirm()
    expect(session.sendCommand.mock.calls).toEqual([['revert eve 5 0,1,2 3,4,5']])
    expect(screens.resume).toHaveBeenCalledTimes(1)
    control.confirm()
    expect(session.sendCommand).toHaveBeenCalledTimes(1)
  })

  test('is dropped if the player does not agree, leaves the world, or has nothing to undo', () => {
    const { store, session, screens, control } = setup()
    control.propose(preview)
    control.cancel()
    control.confirm()
    control.propose(preview)
    store.inWorld = false
    control.update(frame(0))
    store.inWorld = true
    store.screen = 'play'
    control.propose({ ...preview, blocks: 0 })
    control.update(frame(1000))
    expect(screens.show).not.toHaveBeenCalled()
    expect(session.sendCommand).not.toHaveBeenCalled()
  })
})
