import { describe, expect, test, vi } from 'vitest'
import { Connection, type ConnectionEvents, type JoinOptions } from '../src/net/connection'
import { Identity } from '../src/net/identity'
import { texts } from '../src/text/texts'
import { AS, ORIGIN, Socket, fakeNetwork } from './socket'

fakeNetwork()

const PING_MS = 2000
const SILENCE_MS = 60_000 // gameserver/conn.go: how long a gateway keeps a session that sends nothing

function setup(options: JoinOptions = AS) {
  const events = { welcomed: vi.fn(), message: vi.fn(), lost: vi.fn(), refused: vi.fn() } satisfies ConnectionEvents
  const connection = new Connection(ORIGIN, events)
  connection.join(options)
  return { connection, events }
}

/** Waits until the next attempt; returns how long that was, in ms. */
function untilReconnect(events: ReturnType<typeof setup>['events']): number {
  const [, wait] = events.lost.mock.lastCall as [string, number]
  const before = Socket.all.length
  vi.advanceTimersByTime(wait)
  expect(Socket.all).toHaveLength(before + 1)
  return wait
}

const failure = (code: string) => ({ type: 'failure', code, message: `it says ${code}` })

describe('connection', () => {
  test('joins with the name, the view and the key, and signs the challenge', () => {
    const identity = new Identity(new Uint8Array(32).fill(7))
    setup({ name: 'ada', view: 5, identity, skin: 0 })
    Socket.last.onopen?.()
    expect(Socket.last.sent).toEqual([
      { type: 'join', version: 2, name: 'ada', view: 5, encoding: 'cbor', key: identity.key },
    ])
    Socket.last.receive({ type: 'challenge', nonce: 'n', world: 'w' })
    expect(Socket.last.sentOf('prove')).toEqual([{ type: 'prove', signature: identity.prove('n', 'w') }])
  })

  test('sends only while a session is open', () => {
    const { connection } = setup()
    Socket.last.onopen?.()
    connection.send({ type: 'chat', text: 'too early' })
    Socket.last.welcome()
    connection.send({ type: 'chat', text: 'hello' })
    const socket = Socket.last
    socket.onclose?.()
    connection.send({ type: 'chat', text: 'too late' })
    expect(socket.sentOf('chat')).toEqual([{ type: 'chat', text: 'hello' }])
    expect(connection.open).toBe(false)
  })

  test('waits longer after each failure, and from the start again after a welcome', () => {
    const { events } = setup()
    const fail = () => {
      Socket.last.onclose?.()
      return untilReconnect(events)
    }
    const waits = Array.from({ length: 6 }, fail)
    expect(Socket.all).toHaveLength(7)
    expect(waits[0]).toBeLessThan(600)
    expect(waits[5]).toBeGreaterThan(5000)
    Socket.last.welcome()
    expect(fail()).toBeLessThan(600)
  })

  test('leaving ends the session and all attempts', () => {
    const { connection, events } = setup()
    Socket.last.welcome()
    connection.leave()
    expect([Socket.last.closed, connection.open]).toEqual([true, false])
    connection.join(AS)
    Socket.last.onclose?.()
    connection.leave()
    vi.advanceTimersByTime(60_000)
    expect(Socket.all).toHaveLength(2)
    expect(events.lost).toHaveBeenCalledTimes(1)
  })

  test('a new join replaces the one before', () => {
    const { connection, events } = setup()
    const before = Socket.last
    connection.join({ ...AS, name: 'bob' })
    expect(before.closed).toBe(true)
    before.welcome()
    expect(events.welcomed).not.toHaveBeenCalled()
    Socket.last.welcome()
    expect(Socket.last.sentOf('join')).toMatchObject([{ name: 'bob' }])
    expect(connection.open).toBe(true)
  })

  test('joins again at once with another skin, as if handed off', () => {
    const { connection, events } = setup()
    expect(new URL(Socket.last.url).searchParams.get('skin')).toBe('')
    Socket.last.welcome()
    connection.setSkin(0)
    expect(Socket.all).toHaveLength(1)
    connection.setSkin(0x83fa10cd)
    expect(Socket.all).toHaveLength(2)
    expect(new URL(Socket.last.url).searchParams.get('skin')).toBe('83fa10cd')
    Socket.last.welcome()
    expect(events.welcomed.mock.calls.map((call) => call[1] as boolean)).toEqual([false, true])
    expect(events.lost).not.toHaveBeenCalled()
  })

  test('asks for the latest view at a reconnect', () => {
    const { connection } = setup()
    Socket.last.welcome()
    connection.setView(9)
    expect(Socket.last.sentOf('view')).toEqual([{ type: 'view', view: 9 }])
    Socket.last.onclose?.()
    connection.setView(10)
    vi.advanceTimersByTime(1000)
    Socket.last.onopen?.()
    expect(Socket.last.sentOf('join')).toMatchObject([{ view: 10 }])
  })

  test('a server that is silent for five heartbeats is left, one that answers is not', () => {
    const { events } = setup()
    Socket.last.welcome()
    for (let i = 0; i < 20; i++) {
      vi.advanceTimersByTime(PING_MS)
      Socket.last.receive({ type: 'notice', text: 'hm' })
    }
    vi.advanceTimersByTime(5 * PING_MS)
    expect(events.lost).not.toHaveBeenCalled()
    vi.advanceTimersByTime(PING_MS)
    expect(events.lost).toHaveBeenCalledWith('The server stopped responding.', expect.any(Number))
  })

  test('a hidden page, whose heartbeat comes once a minute, sends something more often', () => {
    const { setInterval } = globalThis
    vi.stubGlobal('setInterval', (beat: () => void) => setInterval(beat, 60_000))
    const { connection, events } = setup()
    Socket.last.welcome()
    for (let s = 0; s < 600; s += 20) {
      const pings = Socket.last.sentOf('ping')
      expect(pings.length, `after ${s} s`).toBeGreaterThanOrEqual(1 + s / 20)
      vi.advanceTimersByTime(30)
      Socket.last.receive({ type: 'pong', nonce: pings.at(-1)!.nonce, time_of_day: 0 })
      vi.advanceTimersByTime(20_000)
    }
    expect(events.lost).not.toHaveBeenCalled()
    connection.leave()
    const sent = Socket.last.sent.length
    vi.advanceTimersByTime(120_000)
    expect(Socket.last.sent).toHaveLength(sent)
  })

  test('measures the round trip', () => {
    const { connection } = setup()
    Socket.last.welcome()
    const [first] = Socket.last.sentOf('ping')
    vi.advanceTimersByTime(30)
    Socket.last.receive({ type: 'pong', nonce: first?.nonce, time_of_day: 0 })
    expect(connection.traffic.ping).toBe(30)
    vi.advanceTimersByTime(500)
    Socket.last.receive({ type: 'pong', nonce: 99, time_of_day: 0 }) // not asked for
    expect(connection.traffic.ping).toBe(30)
  })

  test('a message that cannot be read ends the session', () => {
    const { events } = setup()
    Socket.last.welcome()
    Socket.last.onmessage?.({ data: 'no JSON' })
    expect(events.lost).toHaveBeenCalledWith('The server sent an unreadable message.', expect.any(Number))
    expect(Socket.last.closed).toBe(true)
  })

  test('a temporary failure that the page has no text for is told in the words of the server', () => {
    const { events } = setup()
    Socket.last.receive(failure('later'))
    expect(events.lost).toHaveBeenCalledWith('It says later.', expect.any(Number))
  })

  test('a permanent failure is reported, a temporary one is retried', () => {
    const { events } = setup()
    Socket.last.receive(failure('full'))
    expect(events.lost).toHaveBeenCalledWith(texts.failures.full, expect.any(Number)) // in the language of the page
    vi.advanceTimersByTime(1000)
    expect(Socket.all).toHaveLength(2)
    Socket.last.receive(failure('bad_name'))
    expect(events.refused).toHaveBeenCalledWith(failure('bad_name'))
    vi.advanceTimersByTime(60_000)
    expect(Socket.all).toHaveLength(2)
  })

  test('a player who joined from elsewhere does not come back', () => {
    const { events } = setup()
    Socket.last.welcome()
    Socket.last.receive(failure('replaced'))
    expect(events.refused).toHaveBeenCalledWith(failure('replaced'))
    expect(Socket.last.closed).toBe(true)
  })

  test('a taken name is final for a newcomer, but may be the player’s own old session after a loss', () => {
    const newcomer = setup()
    Socket.last.receive(failure('name_taken'))
    expect(newcomer.events.refused).toHaveBeenCalledTimes(1)

    const { events } = setup()
    Socket.last.welcome()
    Socket.last.onclose?.()
    const attempts: number[] = []
    while (events.refused.mock.calls.length === 0) {
      attempts.push((attempts.at(-1) ?? 0) + untilReconnect(events))
      Socket.last.receive(failure('name_taken'))
    }
    expect(attempts.at(-2)).toBeGreaterThan(SILENCE_MS + 5000)
    expect(attempts.at(-1)).toBeLessThan(2 * SILENCE_MS)

    const again = setup()
    Socket.last.welcome()
    for (let ms = 0; ms < 2 * SILENCE_MS; ms += PING_MS) {
      vi.advanceTimersByTime(PING_MS)
      Socket.last.receive({ type: 'notice', text: 'hm' })
    }
    Socket.last.onclose?.() // the time counts from here
    untilReconnect(again.events)
    Socket.last.receive(failure('name_taken'))
    expect(again.events.refused).not.toHaveBeenCalled()
  })

  test('a name that somebody else registers during a session is lost at once', () => {
    const { events } = setup()
    Socket.last.welcome()
    Socket.last.receive(failure('name_taken'))
    expect(events.refused).toHaveBeenCalledTimes(1)
  })
})
