import { describe, expect, test, vi } from 'vitest'
import { fromBase64, toHex } from '../src/net/bytes'
import { Identity } from '../src/net/identity'
import type { ChunkAddress, ChunkDelta } from '../src/net/protocol'
import { Session } from '../src/net/session'
import { Body } from '../src/player/body'
import { storage } from '../src/settings/storage'
import { loadNotices } from '../src/text/notices'
import { texts } from '../src/text/texts'
import { worldOf } from './columns'
import { AS, ORIGIN, Socket, fakeNetwork } from './socket'

fakeNetwork()

const AIR = 'Y2RhYGQAAlQCAA==' // a chunk

const target = (host: string) => ({ url: `ws://${host}:8080/ws`, game: `${host}:4002` })

describe('session', () => {
  const setup = (identity: Identity | null = null) => {
    const world = worldOf(1, (_x, y) => (y < 10 ? 1 : 0))
    const body = new Body()
    const avatars = { enter: vi.fn(), move: vi.fn(), leave: vi.fn(), chunkGone: vi.fn(), clear: vi.fn() }
    const events = {
      joined: vi.fn(),
      disconnected: vi.fn(),
      refused: vi.fn(),
      toast: vi.fn(),
      chat: vi.fn(),
      line: vi.fn(),
      hit: vi.fn(),
      gift: vi.fn(),
      committed: vi.fn(),
      rejected: vi.fn(),
      notice: vi.fn(),
      permissions: vi.fn(),
      rollback: vi.fn(),
      history: vi.fn(),
    }
    const kept = new Map<string, Uint8Array<ArrayBuffer>>() // the cache, by hash
    const cache = {
      get: (hash: Uint8Array) => Promise.resolve(kept.get(toHex(hash)) ?? null),
      put: vi.fn(() => Promise.resolve()),
    }
    const session = new Session(ORIGIN, world, avatars, body, events, cache)
    session.join({ ...AS, identity })
    Socket.last.welcome() // the world is cleared
    for (const chunk of worldOf(1, (_x, y) => (y < 10 ? 1 : 0)).all()) world.put(chunk)
    return { session, world, body, avatars, events, kept, cache }
  }

  test('a player who leaves a chunk is forgotten a little later, unless they have entered it again', () => {
    const { session, avatars } = setup()
    const bob = { player: 'b0', name: 'bob', x: 32.1, y: 12, z: 1, yaw: 0, pitch: 0 }
    const leave = ['b0']
    const enter = [bob]
    const here: ChunkAddress = [0, 0]
    const there: ChunkAddress = [1, 0]
    const receive = (...chunks: ChunkDelta[]) => Socket.last.receive({ type: 'frame', tick: 1, chunks })
    const pass = (ms: number) => {
      vi.advanceTimersByTime(ms)
      session.extrapolate(performance.now())
    }
    receive({ chunk: here, leave }, { chunk: there, enter }, { chunk: there, leave }, { chunk: here, enter })
    expect(avatars.enter.mock.calls.map((call: unknown[]) => call[1])).toEqual([there, here])
    pass(1000)
    expect(avatars.leave.mock.calls).toEqual([['b0', there]]) // removes nobody: they are in the other chunk

    receive({ chunk: here, leave })
    pass(200)
    receive({ chunk: there, enter }) // by another region
    pass(1000)
    expect(avatars.leave.mock.lastCall).toEqual(['b0', here]) // nobody again
    receive({ chunk: here, enter }, { chunk: there, leave })
    pass(1000)
    avatars.leave.mockClear()

    receive({ chunk: here, leave })
    pass(300)
    receive({ chunk: here, leave }) // once more, which changes nothing
    expect(avatars.leave).not.toHaveBeenCalled()
    vi.advanceTimersByTime(100)
    receive() // a hidden page draws no frames: messages must do it
    expect(avatars.leave).toHaveBeenLastCalledWith('b0', here)

    receive({ chunk: here, leave })
    vi.advanceTimersByTime(1000) // a frame that takes long
    receive({ chunk: here, enter })
    pass(1000)
    expect(avatars.leave).toHaveBeenCalledTimes(1)

    receive({ chunk: here, leave })
    Socket.last.welcome() // all enter again
    pass(1000)
    expect(avatars.leave).toHaveBeenCalledTimes(1)
    session.leave()
  })

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

  test('a chunk of a known hash is taken from the cache, and changed by what came meanwhile', async () => {
    const { session, world, kept, cache } = setup()
    vi.useRealTimers() // inflating needs real time
    kept.set('01'.repeat(16), fromBase64(AIR))
    Socket.last.receive({ type: 'chunk_hash', chunk: [0, 0], hash: 'AQEBAQEBAQEBAQEBAQEBAQ==' })
    Socket.last.receive({
      type: 'frame',
      tick: 1,
      chunks: [{ chunk: [0, 0], blocks: [{ x: 3, y: 40, z: 3, block: 1 }] }],
    })
    await vi.waitFor(() => expect(world.get(3, 40, 3)).toBe(1))
    expect(world.get(1, 9, 1)).toBe(0)
    expect(Socket.last.sentOf('chunk')).toEqual([])
    expect(cache.put).not.toHaveBeenCalled()
    session.leave()
  })

  test.each([
    ['missing', null],
    ['unreadable', 'AAAA'],
  ])('a chunk whose data is %s in the cache is requested, and kept when it comes', async (_, data) => {
    const { session, world, kept, cache } = setup()
    vi.useRealTimers()
    if (data) kept.set('01'.repeat(16), fromBase64(data))
    Socket.last.receive({ type: 'chunk_hash', chunk: [0, 0], hash: 'AQEBAQEBAQEBAQEBAQEBAQ==' })
    await vi.waitFor(() => expect(Socket.last.sentOf('chunk')).toEqual([{ type: 'chunk', x: 0, z: 0 }]))
    expect(world.get(1, 9, 1)).toBe(1) // the land that was there stays until then
    Socket.last.receive({ type: 'chunk', chunk: [0, 0], data: AIR })
    await vi.waitFor(() => expect(world.get(1, 9, 1)).toBe(0))
    expect(cache.put).toHaveBeenCalledWith(fromBase64(AIR))
    session.leave()
  })

  test('a chunk that has left the view is not requested', async () => {
    const { session } = setup()
    vi.useRealTimers()
    Socket.last.receive({ type: 'chunk_hash', chunk: [0, 0], hash: 'AQEBAQEBAQEBAQEBAQEBAQ==' })
    Socket.last.receive({ type: 'chunk_gone', chunk: [0, 0] })
    Socket.last.receive({ type: 'chunk_hash', chunk: [0, 1], hash: 'AQEBAQEBAQEBAQEBAQEBAQ==' })
    await vi.waitFor(() => expect(Socket.last.sentOf('chunk')).toEqual([{ type: 'chunk', x: 0, z: 1 }]))
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
    expect(events.committed.mock.calls).toEqual([[{ seq: first, x: 1, y: 10, z: 1, block: 3, before: 0, text: '' }]])
    expect(events.rejected.mock.calls).toEqual([[expect.objectContaining({ seq: second }), 'out_of_reach', false]])
    session.leave()
  })

  test('a player far from their saved position is moved there', () => {
    const { body } = setup()
    Socket.last.receive({ type: 'reconnect', homes: [target('b')], reason: 'stopping' })
    body.place(30, 12, 30)
    Socket.last.welcome({ pose: { x: 9, y: 12, z: 9, yaw: 1, pitch: 0 } })
    expect([body.x, body.z]).toEqual([9, 9])
  })

  test('a notice is shown as the server says it', async () => {
    const { events } = setup()
    Socket.last.receive({ type: 'notice', text: 'in English', code: 'later' })
    await loadNotices()
    expect(events.notice).toHaveBeenLastCalledWith('in English')
  })

  test('an edit that is refused for now is sent again, up to 40 times, and then reverted', () => {
    const { session, world, events } = setup()
    session.edit(1, 9, 1, 0, 0)
    const refuse = () => Socket.last.receive({ type: 'ack', seq: 100, block: 0, error: 'unavailable' })
    for (let i = 1; i <= 40; i++) {
      refuse()
      vi.advanceTimersByTime(700)
      Socket.last.receive({ type: 'notice', text: 'alive' })
      expect(Socket.last.sentOf('edit')).toHaveLength(1 + i)
    }
    expect(world.get(1, 9, 1)).toBe(0)
    refuse()
    vi.advanceTimersByTime(700)
    expect(Socket.last.sentOf('edit')).toHaveLength(41)
    expect(world.get(1, 9, 1)).toBe(1)
    expect(events.rejected.mock.calls.map(([, , again]) => again as boolean)).toEqual([
      ...Array<boolean>(40).fill(true),
      false,
    ])
    session.leave()
  })

  test('an edit that is sent again does not overwrite a newer one at the same place', () => {
    const { session, world } = setup()
    const sent = () => Socket.last.sentOf('edit').map(({ seq }) => seq)
    session.edit(1, 10, 1, 3, 0)
    Socket.last.receive({ type: 'ack', seq: 100, block: 0, error: 'rate' })
    session.edit(1, 10, 1, 0, 0)
    session.edit(2, 10, 1, 3, 0)
    expect(sent()).toEqual([100, 102])
    vi.advanceTimersByTime(700)
    expect(sent()).toEqual([100, 102, 100])
    expect(world.get(1, 10, 1)).toBe(0)
    Socket.last.receive({ type: 'ack', seq: 100, block: 3 })
    expect(sent()).toEqual([100, 102, 100, 101])
    expect(world.get(1, 10, 1)).toBe(0)
    Socket.last.receive({ type: 'ack', seq: 101, block: 0 })
    expect(session.edits.waiting.map(({ seq }) => seq)).toEqual([102])
    session.leave()
  })

  test('after a reconnect, edits at one place are sent one after the other, once their chunk has come', async () => {
    const { session } = setup()
    const sent = () => Socket.last.sentOf('edit').map(({ seq }) => seq)
    Socket.last.onclose?.()
    session.edit(1, 9, 1, 0, 0)
    vi.advanceTimersByTime(600)
    Socket.last.welcome()
    session.edit(1, 9, 1, 3, 0)
    vi.advanceTimersByTime(1000)
    expect(sent()).toEqual([])
    vi.useRealTimers() // inflating needs real time
    Socket.last.receive({ type: 'chunk', chunk: [0, 0], data: AIR })
    await vi.waitFor(() => expect(sent()).toEqual([100]))
    Socket.last.receive({ type: 'ack', seq: 100, block: 0 })
    expect(sent()).toEqual([100, 101])
    session.leave()
  })

  test('after a reconnect only chunks that the gateway will keep up to date are kept', () => {
    const { session, world } = setup()
    Socket.last.welcome({ pose: { x: 40, y: 12, z: 8, yaw: 0, pitch: 0 } })
    expect([world.loaded(8, 8), world.loaded(-8, 8)]).toEqual([true, false])
    session.leave()
  })

  test('a refusal says how many edits may be lost', async () => {
    const { session, events } = setup()
    const banned = { type: 'failure', code: 'banned', message: 'You are banned.', notice: { text: 'You are banned.' } }
    for (const x of [1, 2, 3]) session.edit(x, 10, 1, 3, 0)
    Socket.last.receive({ type: 'ack', seq: 101, block: 3 })
    Socket.last.receive(banned)
    await loadNotices()
    expect(events.refused).toHaveBeenLastCalledWith('You are banned. 2 edits may be lost.')
    session.leave()
    session.join(AS)
    Socket.last.welcome()
    Socket.last.receive(banned)
    await loadNotices()
    expect(events.refused).toHaveBeenLastCalledWith('You are banned.')
  })

  test('a refused edit shows the block that the server has', () => {
    const { session, world, events } = setup()
    session.edit(1, 9, 1, 0, 0)
    Socket.last.receive({ type: 'ack', seq: 100, block: 15, error: 'unbreakable' })
    expect(world.get(1, 9, 1)).toBe(15)
    expect(events.rejected).toHaveBeenCalledWith(expect.objectContaining({ seq: 100 }), 'unbreakable', false)
    expect(session.acknowledged).toBe(0)
    session.leave()
  })

  test('what follows an edit is sent once that is made, and taken back if it is refused', () => {
    const { session, world, events } = setup()
    const places = [1, 2, 3].map((x) => [x, 10, 1] as const)
    const stairs = () => {
      places.forEach((place, i) => session.edit(...place, 3, 0, '', i > 0))
      return session.edits.waiting.map(({ seq }) => seq)
    }
    const sent = () => Socket.last.sentOf('edit').map(({ seq }) => seq as number)
    const [refused] = stairs()
    expect(sent()).toEqual([refused])
    Socket.last.receive({ type: 'ack', seq: refused, block: 0, error: 'claimed' })
    expect([sent(), session.edits.waiting, places.map((place) => world.get(...place))]).toEqual([
      [refused],
      [],
      [0, 0, 0],
    ])
    expect(events.rejected).toHaveBeenCalledTimes(1)
    const [made, ...corners] = stairs()
    session.edit(4, 10, 1, 3, 0)
    Socket.last.receive({ type: 'ack', seq: made, block: 3 })
    expect(sent().slice(1)).toEqual([made, (corners[1] ?? 0) + 1, ...corners])
    expect(places.map((place) => world.get(...place))).toEqual([3, 3, 3])
    session.leave()
  })

  test('a bulk edit is signed, and answered as a whole', () => {
    const identity = new Identity(Uint8Array.from({ length: 32 }, (_, i) => i))
    const { session, world, events } = setup(identity)
    Socket.last.welcome({ signed: true })
    for (const chunk of worldOf(1, (_x, y) => (y < 10 ? 1 : 0)).all()) world.put(chunk)
    Socket.last.receive({ ...permissions('ada'), bulk: 65536 })
    expect(session.bulk).toBe(65536)
    const change = { x: 3, y: 12, z: 4, before: 0, after: 19 }
    const refused = session.editBulk([change], 0)
    expect(Socket.last.sentOf('bulk')).toEqual([
      {
        type: 'bulk',
        seq: refused,
        x: 0,
        z: 0,
        runs: '8361010013',
        signature: identity.signBulk('w1', refused, 0, 0, '8361010013'),
      },
    ])
    Socket.last.receive({ type: 'ack', seq: refused, block: 0, error: 'changed' })
    expect(events.rejected).toHaveBeenCalledWith(expect.objectContaining({ changes: [change] }), 'changed', false)
    expect(world.get(3, 12, 4)).toBe(0)
    Socket.last.receive({ type: 'ack', seq: session.editBulk([change], 0), block: 0 })
    expect(session.edits.waiting).toHaveLength(0)
    session.leave()
  })

  test('the pose is sent at most every 50 ms, and twice when the player stops', () => {
    const { session, body } = setup()
    const moves = () => Socket.last.sentOf('move').length
    for (let now = 1000; now < 1200; now += 10) {
      body.x += 0.1
      session.sendPose(now)
    }
    expect(moves()).toBe(4)
    for (let now = 1200; now < 3000; now += 10) session.sendPose(now)
    expect(moves()).toBe(6) // the last step, and the same pose once more
    body.yaw += 0.1
    session.sendPose(3000)
    expect(moves()).toBe(7)
    session.leave()
  })

  test('a pose goes before an edit, but never more than 100 in a second', () => {
    const { session, body } = setup()
    const sent = () => Socket.last.sent.map(({ type }) => type)
    vi.advanceTimersByTime(1000)
    body.x += 0.1
    session.edit(1, 9, 1, 0, performance.now())
    expect(sent().slice(-2)).toEqual(['move', 'edit'])
    for (let i = 0; i < 200; i++) {
      Socket.last.receive({ type: 'ack', seq: 100 + i, block: 0 })
      vi.advanceTimersByTime(5)
      body.x += 0.1
      session.edit(1, 9, 1, i % 2, performance.now())
      session.sendPose(performance.now())
    }
    expect(Socket.last.sentOf('edit')).toHaveLength(201)
    expect(Socket.last.sentOf('move').length).toBeGreaterThan(60)
    expect(Socket.last.sentOf('move').length).toBeLessThan(100)
    session.leave()
  })

  test('a command that is too long is not sent, which would end the session', () => {
    const { session, events } = setup()
    const socket = Socket.last
    expect(session.sendCommand(`msg ann ${'ü'.repeat(125)}`)).toBe(false)
    expect(events.toast.mock.calls).toEqual([['Not sent: that is too long.']])
    expect(socket.sentOf('command')).toEqual([])
    expect(session.sendCommand(`msg ann ${'ü'.repeat(124)}`)).toBe(true)
    session.leave()
  })

  test('offline, chat and hits are not sent, and the player is told so', () => {
    const { session, events } = setup()
    const socket = Socket.last
    socket.onclose?.()
    expect(session.sendChat('hello', 'near')).toBe(false)
    session.sendHit('p2')
    expect(events.toast.mock.calls).toEqual([['Not sent: you’re offline.'], ['Not possible while offline.']])
    expect([...socket.sentOf('chat'), ...socket.sentOf('hit')]).toEqual([])
    session.leave()
  })

  test('a reconnect after a loss moves the player back to the saved position, and keeps the angles', () => {
    const { body, events } = setup()
    Socket.last.onclose?.()
    expect(events.disconnected).toHaveBeenCalledWith('Connection lost. Reconnecting…')
    body.place(10, 12, 10)
    body.yaw = 2
    vi.advanceTimersByTime(600)
    Socket.last.welcome()
    expect([body.x, body.z, body.yaw]).toEqual([8, 8, 2])
    expect(events.joined).toHaveBeenLastCalledWith(expect.anything(), false, false)
  })

  const permissions = (name: string) => ({
    type: 'standing',
    role: 'builder',
    name,
    commands: [
      { name: 'register', help: '' },
      { name: 'claim', help: '' },
    ],
  })
  const commands = () => Socket.last.sentOf('command').map(({ text }) => text)

  test('a player with a key signs commands with growing numbers', () => {
    const identity = new Identity(new Uint8Array(32).fill(7))
    const { session, events } = setup(identity)
    Socket.last.receive(permissions(''))
    session.sendCommand('register')
    session.sendCommand('kick eve')
    const [first, second] = Socket.last.sentOf('command')
    expect([first?.text, second?.text]).toEqual(['register', 'kick eve'])
    expect(second?.seq).toBeGreaterThan(Number(first?.seq))
    expect(second?.signature).toBe(identity.signCommand('w1', Number(second?.seq), 'ada', 'kick eve'))
    expect(events.permissions).toHaveBeenCalledTimes(1)
    session.leave()
  })

  test.each<[string, (session: Session) => void]>([
    [
      'edit that is acknowledged',
      (session) => {
        session.edit(1, 10, 1, 3, 0)
        session.edit(2, 10, 1, 3, 0)
        const [refused, done] = session.edits.waiting.map(({ seq }) => seq)
        Socket.last.receive({ type: 'ack', seq: refused, block: 0, error: 'claimed' })
        expect(commands()).not.toContain('register')
        Socket.last.receive({ type: 'ack', seq: done, block: 3 })
      },
    ],
    ['line of the chat', (session) => session.sendChat('hello', 'near')],
  ])('a player with a key registers their name at the first %s, once in a session', (_, act) => {
    const { session } = setup(new Identity(new Uint8Array(32).fill(7)))
    Socket.last.receive(permissions(''))
    session.sendCommand('help')
    session.sendPose(1000)
    session.sendHit('p2')
    expect(commands()).toEqual(['help']) // who only looks registers nothing
    act(session)
    expect(commands()).toEqual(['help', 'register'])
    session.sendChat('hello again', 'near') // it may be refused
    Socket.last.receive(permissions('ada'))
    Socket.last.receive(permissions('')) // an admin has released it
    session.sendChat('bye', 'near')
    expect(commands()).toEqual(['help', 'register'])
    Socket.last.welcome()
    Socket.last.receive(permissions(''))
    session.sendChat('back', 'near')
    expect(commands()).toEqual(['help', 'register', 'register'])
    Socket.last.welcome()
    Socket.last.receive(permissions('ada'))
    session.sendChat('and again', 'near')
    expect(commands()).toEqual(['help', 'register', 'register'])
    session.leave()
  })

  test('a claim follows the registration of the name, which it needs, and is not held back by a refusal', () => {
    const { session } = setup(new Identity(new Uint8Array(32).fill(7)))
    Socket.last.receive(permissions(''))
    expect(session.sendCommand('claim 0,0 9,9 harbour')).toBe(true)
    expect(commands()).toEqual(['register', 'claim 0,0 9,9 harbour'])
    const [register, claim] = Socket.last.sentOf('command')
    expect(claim?.seq).toBeGreaterThan(Number(register?.seq))
    session.sendCommand('claim 20,0 29,9 mill') // before the answer
    expect(commands().slice(2)).toEqual(['claim 20,0 29,9 mill'])
    session.leave()
  })

  test('a name that the player registers by command is not registered a second time', () => {
    const { session } = setup(new Identity(new Uint8Array(32).fill(7)))
    Socket.last.receive(permissions(''))
    session.sendCommand('register')
    session.sendCommand('claim 0,0 9,9 harbour')
    session.sendChat('hello', 'near')
    expect(commands()).toEqual(['register', 'claim 0,0 9,9 harbour'])
    session.leave()
  })

  test('a player whose name another has registered is shown with a fingerprint, is told so, and keeps their edits', () => {
    const { session, events } = setup(new Identity(new Uint8Array(32).fill(7)))
    session.edit(1, 9, 1, 0, 0)
    Socket.last.receive({ type: 'failure', code: 'name_taken', message: 'another player has registered the name ada' })
    expect(events.refused).not.toHaveBeenCalled()
    vi.advanceTimersByTime(600)
    Socket.last.welcome({ name: 'ada-x7q' })
    expect(events.toast.mock.calls).toEqual([[texts.nameTaken('ada', 'ada-x7q')]])
    expect(session.edits.waiting).toHaveLength(1)
    Socket.last.welcome({ name: 'ada-x7q' }) // after a loss
    expect(events.toast).toHaveBeenCalledTimes(1)
    session.leave()
  })

  test('commands are numbered by the clock of the server, as far as that of this machine has come', () => {
    const hour = 3_600_000
    const { session } = setup(new Identity(new Uint8Array(32).fill(7)))
    const seqs = () => Socket.last.sentOf('command').map(({ seq }) => Number(seq))
    vi.setSystemTime(10 * hour)
    Socket.last.welcome({ next_seq: 7 * hour * 1000 })
    session.sendCommand('help') // this clock is fast
    vi.advanceTimersByTime(1000)
    session.sendCommand('help')
    expect(seqs()).toEqual([7 * hour * 1000, (7 * hour + 1000) * 1000])
    vi.setSystemTime(7 * hour + 2000) // corrected
    vi.advanceTimersByTime(1000)
    session.sendCommand('help')
    expect(seqs().at(-1)).toBe((7 * hour + 2000) * 1000)
    Socket.last.welcome({ next_seq: 99 * hour * 1000 }) // a gateway that lies
    session.sendCommand('help')
    expect(seqs().at(-1)).toBe((7 * hour + 3000) * 1000)
    session.leave()
  })

  test('a key that this browser cannot store takes no name', () => {
    const { session } = setup(new Identity(new Uint8Array(32).fill(7)))
    const keeps = vi.spyOn(storage, 'keeps').mockReturnValue(false)
    Socket.last.receive(permissions(''))
    session.sendChat('hello', 'near')
    expect(Socket.last.sentOf('command')).toEqual([])
    keeps.mockRestore()
    session.leave()
  })

  test('texts of signs come and go with their blocks, and an edit is sent again with its text', () => {
    const { session } = setup()
    const at = (x: number, text: string) => ({ x, y: 9, z: 1, text })
    Socket.last.receive({ type: 'signs', signs: [at(1, 'home'), at(2, 'to the\nharbour'), at(40, 'far')] })
    expect(session.signs.near(20, 9, 1, 20)).toHaveLength(3)
    const change = { x: 1, y: 9, z: 1, block: 0 }
    Socket.last.receive({ type: 'frame', tick: 1, chunks: [{ chunk: [0, 0], blocks: [change] }] })
    Socket.last.receive({ type: 'signs', signs: [at(2, '')] })
    Socket.last.receive({ type: 'chunk_gone', chunk: [1, 0] })
    expect(session.signs.near(20, 9, 1, 20)).toEqual([])
    session.edit(1, 9, 1, 16, 0, 'home')
    session.edit(2, 9, 1, 16, 0)
    expect(Socket.last.sentOf('edit').map(({ text }) => text)).toEqual(['home', undefined])
    const seq = session.edits.waiting[0]?.seq
    expect(session.edits.waiting.map(({ text }) => text)).toEqual(['home', ''])
    Socket.last.receive({ type: 'ack', seq: seq ?? 0, block: 16 })
    expect(session.edits.waiting).toHaveLength(1)
    session.leave()
  })

  test('a player with a key signs edits, where the gateway knows that', () => {
    const identity = new Identity(new Uint8Array(32).fill(7))
    const { session } = setup(identity)
    session.edit(1, 9, 1, 0, 0)
    Socket.last.receive({ type: 'ack', seq: 100, block: 0 })
    Socket.last.welcome({ next_seq: 200, signed: true })
    session.edit(12, 9, 3, 16, 0)
    const [plain, signed] = Socket.last.sentOf('edit')
    expect(plain?.signature).toBeUndefined()
    expect(signed?.signature).toBe(identity.signEdit('w1', 200, 12, 9, 3, 16))
    // as player.EditText
    expect(identity.signEdit('w1', 100, 12, 63, -4, 16)).toBe(
      'f7e66c2e9c5bed97ad12baace1e34be56099e464e0afb0508514cf5e8313e208b936e27b24896eb7e12f0b84a366300de27343b6f218444d78dee2fa3e313f01',
    )
    expect(identity.signEdit('w1', 100, 12, 63, -4, 320, 'to the\nharbour')).toBe(
      '9e3dd039799f3ed6d0a358867d0ee51d10fcea943766121a702efc0de5a12aacd3536aa78092520c01745f8f7697f0bfff6841363934f6a5fe8b619e13ba6401',
    )
    session.leave()
    const guest = setup().session
    Socket.last.welcome({ signed: true })
    guest.edit(1, 9, 1, 0, 0)
    expect(Socket.last.sentOf('edit').at(-1)?.signature).toBeUndefined()
    guest.leave()
  })

  test('the numbers of edits keep up with the time', () => {
    const { session } = setup()
    const hour = 3_600_000
    session.edit(1, 9, 1, 0, performance.now())
    session.edit(2, 9, 1, 0, performance.now() + 2 * hour)
    session.edit(3, 9, 1, 0, performance.now() + 2 * hour)
    const [first, second, third] = session.edits.waiting.map(({ seq }) => seq)
    expect([Number(second) - Number(first), Number(third) - Number(second)]).toEqual([2 * hour * 1000, 1])
    session.leave()
  })

  test('a name that is somebody else’s is not registered, and a guest signs nothing', () => {
    const { session } = setup(new Identity(new Uint8Array(32).fill(7)))
    Socket.last.welcome({ name: 'ada-x7q' })
    Socket.last.receive(permissions(''))
    session.sendChat('hello', 'near')
    expect(Socket.last.sentOf('command')).toEqual([])
    session.leave()
    const guest = setup().session
    Socket.last.receive(permissions(''))
    guest.sendChat('hello', 'near')
    guest.sendCommand('help')
    expect(Socket.last.sentOf('command')).toEqual([{ type: 'command', text: 'help' }])
    guest.leave()
  })

  test('another world, or another player, starts with nothing', () => {
    const { session, world, events } = setup()
    session.edit(1, 9, 1, 0, 0)
    Socket.last.onclose?.()
    vi.advanceTimersByTime(600)
    Socket.last.welcome({ player: 'p2' })
    expect([world.size, session.edits.waiting.length]).toEqual([0, 0])
    expect(events.joined).toHaveBeenLastCalledWith(expect.anything(), true, false)
  })
})
