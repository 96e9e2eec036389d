import { describe, expect, test, vi } from 'vitest'
import { Connection, type ConnectionEvents } from '../src/net/connection'
import { Endpoints, usableTargets } from '../src/net/endpoints'
import { addressFor } from '../src/net/link'
import { AS, ORIGIN, Socket, WELCOME, fakeNetwork } from './socket'

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

fakeNetwork()

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
    expect(Socket.last.url).toBe(addressFor(target('b').url, 0))
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
    expect(Socket.last.url).toBe(addressFor(target('c').url, 0))
    vi.advanceTimersByTime(4010) // silent
    vi.advanceTimersByTime(5)
    expect(Socket.last.url).toBe(addressFor(target('d').url, 0))
    Socket.last.welcome({ world: 'w2' })
    vi.advanceTimersByTime(5)
    expect(Socket.last.url).toBe(addressFor(ORIGIN, 0))
    expect(events.welcomed).toHaveBeenCalledTimes(1)
    Socket.last.welcome()
    expect(events.welcomed).toHaveBeenLastCalledWith(expect.anything(), true)
  })

  test('once all addresses have been tried, waits for one that is slow', () => {
    const { events } = setup()
    Socket.last.receive(reconnect(target('b')))
    vi.advanceTimersByTime(4010) // silent
    vi.advanceTimersByTime(5)
    expect(Socket.last.url).toBe(addressFor(ORIGIN, 0))
    vi.advanceTimersByTime(4010)
    vi.advanceTimersByTime(15_000)
    const { length } = Socket.all
    const slow = Socket.last
    slow.onopen?.()
    vi.advanceTimersByTime(6000)
    expect(Socket.all).toHaveLength(length)
    slow.welcome()
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
    expect(Socket.last.url).toBe(addressFor(ORIGIN, 0))
    Socket.last.onclose?.()
    vi.advanceTimersByTime(2000)
    expect(Socket.last.url).toBe(addressFor(target('c').url, 0))
  })

  test('without a target it reports the reason, and tries the same address until the node is back', () => {
    const { events } = setup()
    Socket.last.receive(reconnect())
    expect(events.lost).toHaveBeenCalledWith('stopping', expect.any(Number))
    for (let i = 0; i < 5; i++) {
      const before = Socket.all.length
      vi.advanceTimersByTime(15_000)
      expect(Socket.all.length).toBeGreaterThan(before)
      expect(Socket.last.url).toBe(addressFor(ORIGIN, 0))
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
    expect(new Set(Socket.all.map(({ url }) => url))).toEqual(new Set([addressFor('wss://a/ws', 0)]))
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
    expect(Socket.last.url).toBe(addressFor(target('b').url, 0))
    expect(events.welcomed).toHaveBeenCalledWith(expect.anything(), false)
  })
})
