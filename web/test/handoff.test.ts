import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { decodeCBOR } from '../src/net/cbor'
import { Connection, type ConnectionEvents } from '../src/net/connection'
import { Endpoints, usableTargets } from '../src/net/endpoints'
import { Session } from '../src/net/session'
import { CLIENT_MOVE } from '../src/net/tick'
import { Body } from '../src/player/body'
import type { Welcome } from '../src/net/protocol'
import { worldOf } from './columns'

const ORIGIN = 'ws://a:8080/ws'
const target = (host: string, scheme = 'ws') => ({ url: `${scheme}://${host}:8080/ws`, game: `${host}:4002` })

describe('endpoints', () => {
  test('targets that cannot be opened are skipped', () => {
    const targets = [
      target('b'),
      target('c', 'wss'),
      { url: 'http://d/', game: 'd:1' },
      { url: 'ws://user:pass@e/ws' },
      { url: 'ws://f/ws#g' },
      { url: 7 },
      null,
      'ws://h/ws',
    ]
    expect(usableTargets(targets, false)).toEqual([target('b').url, target('c', 'wss').url])
    expect(usableTargets(targets, true)).toEqual([target('c', 'wss').url])
    expect(usableTargets([{ url: `ws://b/${'x'.repeat(600)}` }], false)).toEqual([])
    expect(
      usableTargets(
        Array.from({ length: 20 }, (_, i) => target(`b${i}`)),
        false,
      ),
    ).toHaveLength(8)
    for (const none of [undefined, null, 'ws://b/ws', { length: 1 }]) expect(usableTargets(none, false)).toEqual([])
  })

  test('tries the targets, then the page’s own address, and starts over', () => {
    const endpoints = new Endpoints(ORIGIN)
    expect(endpoints.handOff([target('b'), target('c')])).toBe(true)
    const tried = [0, 1, 2, 3].map(() => {
      const { url } = endpoints
      endpoints.advance()
      return url
    })
    expect(tried).toEqual([target('b').url, target('c').url, ORIGIN, target('b').url])
  })

  test('keeps the page’s own address after every handoff', () => {
    const endpoints = new Endpoints(ORIGIN)
    endpoints.handOff([target('b'), target('c')])
    endpoints.preferCurrent()
    endpoints.handOff([target('d'), target('e')])
    endpoints.advance()
    endpoints.preferCurrent()
    expect(endpoints.url).toBe(target('e').url)
    endpoints.advance()
    expect(endpoints.url).toBe(ORIGIN)
  })

  test('keeps its address if there is no target', () => {
    const endpoints = new Endpoints('wss://a/ws')
    for (const targets of [[], [target('b')], [{ url: 'wss://a/ws', game: 'a:1' }]])
      expect(endpoints.handOff(targets)).toBe(false)
    expect(endpoints.url).toBe('wss://a/ws')
    endpoints.advance()
    expect(endpoints.url).toBe('wss://a/ws')
  })
})

interface Sent {
  type: string
  [field: string]: unknown
}

/** A WebSocket that the test controls. */
class Socket {
  static all: Socket[] = []
  sent: Sent[] = []
  closed = false
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: (() => void) | null = null
  constructor(readonly url: string) {
    Socket.all.push(this)
  }
  static get last(): Socket {
    return Socket.all.at(-1)!
  }
  send(data: string | Uint8Array<ArrayBuffer>) {
    if (typeof data === 'string') this.sent.push(JSON.parse(data) as Sent)
    else if (data[0] === CLIENT_MOVE) this.sent.push(moveOf(data))
    else this.sent.push(decodeCBOR(data) as Sent)
  }
  close() {
    this.closed = true
  }
  receive(message: object) {
    this.onmessage?.({ data: JSON.stringify(message) })
  }
  /** Opens the socket and sends a welcome. */
  welcome(fields: object = {}) {
    this.onopen?.()
    this.receive({ ...WELCOME, ...fields })
  }
  sentOf(type: string) {
    return this.sent.filter((message) => message.type === type)
  }
}

function moveOf(data: Uint8Array) {
  const view = new DataView(data.buffer, data.byteOffset)
  return { type: 'move', x: view.getFloat64(1, true), y: view.getFloat64(9, true), z: view.getFloat64(17, true) }
}

const WELCOME: Welcome = {
  type: 'welcome',
  version: 1,
  world: 'w1',
  world_name: 'voxels',
  sections: 1,
  player: 'p1',
  name: 'ada',
  guest: true,
  next_seq: 100,
  pose: { x: 8, y: 12, z: 8, yaw: 0, pitch: 0 },
  view: 1,
  reach: 8,
  tick_ms: 50,
  time_of_day: 0,
  day_ms: 1000,
  gateway: 'g',
  server_version: 't',
}
const AS = { name: 'ada', view: 1, identity: null }

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('window', globalThis)
  vi.stubGlobal('WebSocket', Socket)
  Socket.all = []
})

afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

describe('connection', () => {
  const setup = (origin = ORIGIN) => {
    const events = { welcomed: vi.fn(), message: vi.fn(), lost: vi.fn(), refused: vi.fn() } satisfies ConnectionEvents
    const connection = new Connection(origin, events)
    connection.join(AS)
    Socket.last.welcome()
    return { connection, events }
  }
  const reconnect = (...targets: object[]) => ({ type: 'reconnect', homes: targets, reason: 'stopping' })

  test('connects to the first target at once, without a message to the player', () => {
    const { connection, events } = setup()
    const old = Socket.last
    old.receive(reconnect(target('b'), target('c')))
    expect(old.closed).toBe(true)
    expect(Socket.last.url).toBe(target('b').url)
    Socket.last.welcome()
    expect(Socket.last.sentOf('join')).toHaveLength(1)
    expect(connection.open).toBe(true)
    expect(events.welcomed.mock.calls.map(([, moved]) => moved as unknown)).toEqual([false, true])
    expect(events.lost).not.toHaveBeenCalled()
  })

  test('skips targets that refuse, are silent, or belong to another world, and returns to the first address', () => {
    const { events } = setup()
    Socket.last.receive(reconnect(target('b'), target('c'), target('d')))
    Socket.last.onclose?.() // refused
    vi.advanceTimersByTime(5)
    expect(Socket.last.url).toBe(target('c').url)
    vi.advanceTimersByTime(4010) // silent
    vi.advanceTimersByTime(5)
    expect(Socket.last.url).toBe(target('d').url)
    Socket.last.welcome({ world: 'w2' })
    vi.advanceTimersByTime(5)
    expect(Socket.last.url).toBe(ORIGIN)
    expect(events.welcomed).toHaveBeenCalledTimes(1)
    Socket.last.welcome()
    expect(events.welcomed).toHaveBeenLastCalledWith(expect.anything(), true)
  })

  test('signs nothing for a target of another world', () => {
    const events = { welcomed: vi.fn(), message: vi.fn(), lost: vi.fn(), refused: vi.fn() } satisfies ConnectionEvents
    const connection = new Connection(ORIGIN, events)
    const prove = vi.fn(() => 'signature')
    connection.join({ ...AS, identity: { key: 'k', prove } as never })
    Socket.last.onopen?.()
    Socket.last.receive({ type: 'challenge', nonce: 'n', world: 'w1' })
    Socket.last.receive(WELCOME)
    Socket.last.receive(reconnect(target('b')))
    Socket.last.onopen?.()
    Socket.last.receive({ type: 'challenge', nonce: 'n', world: 'w2' })
    expect(prove).toHaveBeenCalledTimes(1)
    expect(Socket.last.sentOf('prove')).toHaveLength(0)
  })

  test('returns to the page’s own address if the target is lost later', () => {
    setup()
    Socket.last.receive(reconnect(target('b'), target('c')))
    Socket.last.welcome()
    Socket.last.onclose?.()
    vi.advanceTimersByTime(1000)
    expect(Socket.last.url).toBe(ORIGIN)
    Socket.last.onclose?.()
    vi.advanceTimersByTime(2000)
    expect(Socket.last.url).toBe(target('c').url)
  })

  test('without a target it reports the reason, and tries the same address until the node is back', () => {
    const { events } = setup()
    Socket.last.receive(reconnect())
    expect(events.lost).toHaveBeenCalledWith('stopping', expect.any(Number))
    for (let i = 0; i < 5; i++) {
      const before = Socket.all.length
      vi.advanceTimersByTime(15_000)
      expect(Socket.all.length).toBeGreaterThan(before)
      expect(Socket.last.url).toBe(ORIGIN)
      Socket.last.onclose?.()
    }
    vi.advanceTimersByTime(15_000)
    Socket.last.welcome()
    expect(events.welcomed).toHaveBeenCalledTimes(2)
  })

  test('a page loaded over https opens no ws://', () => {
    const { events } = setup('wss://a/ws')
    Socket.last.receive(reconnect(target('b')))
    expect(events.lost).toHaveBeenCalled()
    vi.advanceTimersByTime(15_000)
    expect(new Set(Socket.all.map(({ url }) => url))).toEqual(new Set(['wss://a/ws']))
  })

  test('handoffs in a circle back off', () => {
    setup()
    for (let i = 0; i < 50; i++) Socket.last.receive(reconnect(target(i % 2 ? 'c' : 'b')))
    expect(Socket.all.length).toBeLessThan(10)
    for (let second = 0; second < 60; second++) {
      vi.advanceTimersByTime(1000)
      if (!Socket.last.closed) Socket.last.receive(reconnect(target(second % 2 ? 'c' : 'b')))
    }
    expect(Socket.all.length).toBeLessThan(30)
  })

  test('a handoff before the welcome joins at the target', () => {
    const events = { welcomed: vi.fn(), message: vi.fn(), lost: vi.fn(), refused: vi.fn() } satisfies ConnectionEvents
    new Connection(ORIGIN, events).join(AS)
    Socket.last.onopen?.()
    Socket.last.receive(reconnect(target('b')))
    Socket.last.welcome()
    expect(Socket.last.url).toBe(target('b').url)
    expect(events.welcomed).toHaveBeenCalledWith(expect.anything(), false)
  })
})

describe('session', () => {
  const setup = () => {
    const world = worldOf(1, (_x, y) => (y < 10 ? 1 : 0))
    const body = new Body()
    const avatars = { enter: vi.fn(), move: vi.fn(), leave: vi.fn(), chunkGone: vi.fn(), clear: vi.fn() }
    const events = {
      joined: vi.fn(),
      disconnected: vi.fn(),
      refused: vi.fn(),
      toast: vi.fn(),
      chat: vi.fn(),
      hit: vi.fn(),
      gift: vi.fn(),
      committed: vi.fn(),
      notice: vi.fn(),
    }
    const session = new Session(ORIGIN, world, avatars, body, events)
    session.join(AS)
    Socket.last.welcome() // the world is cleared
    for (const chunk of worldOf(1, (_x, y) => (y < 10 ? 1 : 0)).all()) world.put(chunk)
    return { session, world, body, events }
  }

  test('a handoff keeps world, position and edits, and sends the edits again under their numbers', async () => {
    const { session, world, body, events } = setup()
    const loaded = world.size
    body.place(9, 12, 9)
    expect(session.edit(1, 9, 1, 0, 0)).toBe(true)
    Socket.last.receive({ type: 'reconnect', homes: [target('b')], reason: 'stopping' })
    expect(session.edit(2, 9, 2, 0, 0)).toBe(true) // during the handoff
    body.place(10, 12, 10)
    expect([world.get(1, 9, 1), world.get(2, 9, 2)]).toEqual([0, 0])
    Socket.last.welcome({ gateway: 'g2', next_seq: 101, pose: { x: 9, y: 12, z: 9, yaw: 1, pitch: 0 } })
    expect(world.size).toBe(loaded)
    expect([body.x, body.z]).toEqual([10, 10])
    expect([world.get(1, 9, 1), world.get(2, 9, 2)]).toEqual([0, 0])
    expect(session.edits.waiting.map(({ seq }) => seq)).toEqual([100, 101])
    expect(events.disconnected).not.toHaveBeenCalled()
    expect(events.joined).toHaveBeenLastCalledWith(expect.objectContaining({ gateway: 'g2' }), false, true)
    vi.useRealTimers() // inflating needs real time
    Socket.last.receive({ type: 'chunk', chunk: [0, 0], data: 'Y2RhYGQAAlQCAA==' }) // air
    await vi.waitFor(() => expect(Socket.last.sentOf('edit').map(({ seq }) => seq)).toEqual([100, 101]))
    // the server checks reach from the current position, not from the saved one
    expect(Socket.last.sent.map(({ type }) => type).slice(-3)).toEqual(['move', 'edit', 'edit'])
    expect(Socket.last.sentOf('move').at(-1)).toMatchObject({ x: 10, z: 10 })
    Socket.last.receive({ type: 'ack', seq: 100, block: 0 })
    Socket.last.receive({ type: 'ack', seq: 101, block: 0 })
    expect(session.edits.waiting).toHaveLength(0)
    session.leave()
  })

  test('a committed edit is reported once, and a refused one is not', () => {
    const { session, events } = setup()
    for (const x of [1, 2]) session.edit(x, 10, 1, 3, 0)
    expect(events.committed).not.toHaveBeenCalled()
    const [first, second] = session.edits.waiting.map(({ seq }) => seq)
    Socket.last.receive({ type: 'ack', seq: first, block: 3 })
    Socket.last.receive({ type: 'ack', seq: first, block: 3 })
    Socket.last.receive({ type: 'ack', seq: second, block: 0, error: 'out_of_reach' })
    expect(events.committed.mock.calls).toEqual([[3]])
    session.leave()
  })

  test('a player far from their saved position is moved there', () => {
    const { body } = setup()
    Socket.last.receive({ type: 'reconnect', homes: [target('b')], reason: 'stopping' })
    body.place(30, 12, 30)
    Socket.last.welcome({ pose: { x: 9, y: 12, z: 9, yaw: 1, pitch: 0 } })
    expect([body.x, body.z]).toEqual([9, 9])
  })
})
