import { expect, test, vi } from 'vitest'
import { Stances } from '../src/game/stances'
import type { Welcome } from '../src/net/protocol'
import type { View } from '../src/render/view'

vi.mock('../src/render/held-blocks', () => ({ HeldBlocks: vi.fn() }))

test('a stance is sent when it changes, four times a second at most, and anew in each session', () => {
  const store = { selectedBlock: 1 }
  const body = { sneaks: false }
  const send = vi.fn()
  const session = { welcome: { stances: true } as Welcome, connection: { open: true, send } }
  const view = { add: vi.fn(), terrain: {} }
  const stances = new Stances(store, body, session, { held: null }, view as unknown as View)
  const sent = (now: number) => {
    send.mockClear()
    stances.update({ now })
    return send.mock.lastCall?.[0] as unknown
  }
  expect(sent(1000)).toEqual({ type: 'stance', held: 1, sneaks: false })
  expect(sent(2000)).toBeUndefined()
  body.sneaks = true
  expect(sent(3000)).toEqual({ type: 'stance', held: 1, sneaks: true })
  body.sneaks = false
  expect(sent(3100)).toBeUndefined()
  store.selectedBlock = 2
  expect(sent(3250)).toEqual({ type: 'stance', held: 2, sneaks: false })
  session.welcome = { stances: true } as Welcome
  expect(sent(4000)).toEqual({ type: 'stance', held: 2, sneaks: false })
  session.welcome = {} as Welcome // an older gateway
  store.selectedBlock = 3
  expect(sent(5000)).toBeUndefined()
})
