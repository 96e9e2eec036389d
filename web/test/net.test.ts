import { createHash, createPublicKey, verify } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Identity, loadIdentity } from '../src/net/identity'
import { backoff } from '../src/net/connection'
import { fromBase64, fromHex, inflate, toHex } from '../src/net/bytes'
import { clipChat, decode, encode, isName, proofText } from '../src/net/protocol'
import { defaults, loadSettings, saveSettings } from '../src/settings/settings'
import { Clock, clockText } from '../src/world/clock'
import { Edits } from '../src/world/edits'
import { worldOf } from './columns'

function storage(): Pick<Storage, 'getItem' | 'setItem'> {
  const kept = new Map<string, string>()
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) }
}

describe('protocol', () => {
  test('messages have exactly the fields of docs/protocol.md', () => {
    expect(encode({ type: 'edit', seq: 1, x: 12, y: 63, z: -4, block: 0 })).toBe(
      '{"type":"edit","seq":1,"x":12,"y":63,"z":-4,"block":0}',
    )
    expect(encode({ type: 'move', x: 12.5, y: 64, z: -3.25, yaw: 1.57, pitch: -0.2 })).toBe(
      '{"type":"move","x":12.5,"y":64,"z":-3.25,"yaw":1.57,"pitch":-0.2}',
    )
    expect(JSON.parse(encode({ type: 'join', version: 1, name: 'me', view: 1, encoding: 'json' }))).toEqual({
      type: 'join',
      version: 1,
      name: 'me',
      view: 1,
      encoding: 'json',
    })
  })

  test('decodes known messages, skips unknown ones, throws on anything else', () => {
    expect(decode('{"type":"ack","seq":1,"block":0}')).toEqual({ type: 'ack', seq: 1, block: 0 })
    const hit = { type: 'hit', player: '6b', name: 'ada', to: 'ef', to_name: 'eve' }
    const gift = { ...hit, type: 'gift', block: 16, count: 3 }
    const denied = { type: 'denied', deed: 'hit', player: 'ef', error: 'out_of_reach' }
    for (const message of [hit, gift, denied]) expect(decode(JSON.stringify(message))).toEqual(message)
    expect(decode('{"type":"fireworks"}')).toBeNull()
    for (const text of ['', '{', '[]', 'null', '7', '{"seq":1}']) expect(() => decode(text), text).toThrow()
  })

  test('names', () => {
    for (const name of ['a', 'ada_Lovelace-1815', 'x'.repeat(20)]) expect(isName(name), name).toBe(true)
    for (const name of ['', 'x'.repeat(21), 'a b', 'ä', 'a\n', 'a\u0000']) expect(isName(name), name).toBe(false)
  })

  test('chat is cut between characters to what a line to the world may have', () => {
    expect(clipChat('  hello 🌍 ')).toBe('hello 🌍')
    expect(clipChat('a\u202e\u2028c 👩\u200d🌾 \u{1f3f4}\u{e0067}\u{e007f}')).toBe('ac 👩\u200d🌾 \u{1f3f4}')
    expect(clipChat(' \u200b\ufeff ')).toBe('')
    const clipped = clipChat('🌍'.repeat(100))
    expect(clipped).toBe('🌍'.repeat(62))
  })
})

describe('identity', () => {
  test('signs the proof so that another Ed25519 implementation accepts it', () => {
    const identity = new Identity(new Uint8Array(32).fill(7))
    const signature = fromHex(identity.prove('ab'.repeat(32), 'cd'.repeat(32)), 64)!
    const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(identity.key, 'hex')])
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
    const text = `voxeld session 1\n${'cd'.repeat(32)}\n${'ab'.repeat(32)}`
    expect(proofText('ab'.repeat(32), 'cd'.repeat(32))).toBe(text)
    expect(verify(null, Buffer.from(text), key, signature)).toBe(true)
    expect(verify(null, Buffer.from(text + 'x'), key, signature)).toBe(false)
  })

  test('is created once and stored; damaged ones are replaced', () => {
    const store = storage()
    const first = loadIdentity(store)
    expect(loadIdentity(store).key).toBe(first.key)
    expect(loadIdentity(storage()).key).not.toBe(first.key)
    store.setItem('voxeld.key', 'not hex')
    expect(loadIdentity(store).key).not.toBe(first.key)
  })
})

test('bytes', async () => {
  expect(toHex(fromHex('00ff10', 3)!)).toBe('00ff10')
  expect(fromHex('00ff', 3)).toBeNull()
  expect(fromHex('zz', 1)).toBeNull()
  const inflated = await inflate(fromBase64('Y2RhYGQAAlQCAA=='), 1000) // docs/protocol.md: a chunk of air
  expect([...inflated.slice(0, 5)]).toEqual([1, 4, 0, 1, 0])
  expect(inflated).toHaveLength(22)
  await expect(inflate(fromBase64('Y2RhYGQAAlQCAA=='), 10)).rejects.toThrow(/more than 10/)
  expect(createHash('sha256').update(inflated).digest('hex')).toHaveLength(64)
})

test('the backoff grows to at most ten seconds', () => {
  const waits = [0, 1, 2, 3, 4, 5, 9, 1000].map((n) => backoff(n, 0.5))
  for (let i = 1; i < waits.length; i++) expect(waits[i]).toBeGreaterThanOrEqual(waits[i - 1]!)
  expect(waits[0]).toBeLessThan(600)
  expect(waits[7]).toBe(10_000)
})

describe('edits', () => {
  const setup = () => {
    const world = worldOf(1, (_x, y) => (y < 10 ? 1 : 0))
    const edits = new Edits(world)
    edits.setNextSeq(5)
    return { world, edits }
  }

  test('the blocks of bulk edits are those that the region sends, in its order', () => {
    const world = worldOf(1, () => 0)
    const edits = new Edits(world)
    edits.setNextSeq(5)
    const change = (x: number) => ({ x, y: 3, z: 4, before: 0, after: 7 })
    expect(edits.makeBulk([change(1), change(2)])).toMatchObject({ seq: 5, x: 0, z: 0 })
    edits.makeBulk([change(9)])
    edits.chunkLoaded(0, 0)
    for (const x of [1, 2]) edits.applyCommitted(x, 3, 4, 7)
    edits.applyCommitted(2, 3, 4, 0) // another player takes one back, before the answer is here
    expect([world.get(1, 3, 4), edits.waiting.length]).toEqual([7, 2])
    edits.acknowledge(5, 0)
    edits.withdraw(6)
    expect([world.get(1, 3, 4), world.get(2, 3, 4), world.get(9, 3, 4), edits.waiting.length]).toEqual([7, 0, 0, 0])
  })

  test('a bulk edit is underway until it is answered and its blocks are here', () => {
    const edits = new Edits(worldOf(1, () => 0))
    edits.setNextSeq(5)
    for (const answerFirst of [true, false]) {
      const { seq } = edits.makeBulk([{ x: 1, y: 3, z: 4, before: 0, after: 7 }])
      if (answerFirst) {
        edits.acknowledge(seq, 0)
        expect([edits.isUnderway(1, 3, 4), edits.isUnderway(40, 3, 4)]).toEqual([true, false])
      }
      edits.applyCommitted(1, 3, 4, 7)
      if (!answerFirst) edits.acknowledge(seq, 0)
      expect(edits.isUnderway(1, 3, 4)).toBe(false)
    }
    edits.acknowledge(edits.makeBulk([{ x: 1, y: 3, z: 4, before: 7, after: 0 }]).seq, 0)
    edits.chunkLoaded(0, 0)
    expect(edits.isUnderway(1, 3, 4)).toBe(false)
  })

  test('a bulk edit whose blocks came with the whole chunk, before its answer, is not underway', () => {
    const world = worldOf(1, () => 0)
    const edits = new Edits(world)
    const { seq } = edits.makeBulk([{ x: 1, y: 3, z: 4, before: 0, after: 7 }])
    world.set(1, 3, 4, 7)
    edits.chunkLoaded(0, 0)
    edits.acknowledge(seq, 0)
    expect(edits.isUnderway(1, 3, 4)).toBe(false)
  })

  test('are applied at once and stay when acknowledged', () => {
    const { world, edits } = setup()
    const edit = edits.make(1, 9, 1, 0)!
    expect(edit.seq).toBe(5)
    expect(world.get(1, 9, 1)).toBe(0)
    edits.acknowledge(5, 0)
    expect(world.get(1, 9, 1)).toBe(0)
    expect(edits.waiting).toHaveLength(0)
  })

  test('are reverted when refused', () => {
    const { world, edits } = setup()
    edits.make(1, 9, 1, 0)
    edits.acknowledge(5, 15)
    expect(world.get(1, 9, 1)).toBe(15)
    edits.make(2, 9, 2, 0)
    edits.withdraw(6)
    expect(world.get(2, 9, 2)).toBe(1)
  })

  test('at one place complete in any order, and changes by others stay beneath', () => {
    const { world, edits } = setup()
    edits.make(1, 9, 1, 0)
    edits.make(1, 9, 1, 16)
    edits.applyCommitted(1, 9, 1, 0) // the echo of the first
    expect(world.get(1, 9, 1)).toBe(16)
    edits.acknowledge(5, 0)
    expect(world.get(1, 9, 1)).toBe(16)
    edits.applyCommitted(1, 9, 1, 19) // by another player
    expect(world.get(1, 9, 1)).toBe(16)
    edits.acknowledge(6, 19)
    expect(world.get(1, 9, 1)).toBe(19)
  })

  test('survive a reconnect under their numbers', () => {
    const { world, edits } = setup()
    edits.make(1, 9, 1, 0)
    edits.make(40, 9, 1, 0)
    world.set(1, 9, 1, 1) // the chunk is loaded again, without the edit
    edits.setNextSeq(5)
    edits.chunkLoaded(0, 0)
    expect(world.get(1, 9, 1)).toBe(0)
    expect(edits.waitingIn(0, 0).map(({ seq }) => seq)).toEqual([5])
    expect(edits.waitingIn(1, 0).map(({ seq }) => seq)).toEqual([6])
    expect(edits.make(2, 9, 2, 0)!.seq).toBe(7)
    edits.withdraw(5)
    expect(world.get(1, 9, 1)).toBe(1)
  })

  test('continue under the greater number after a reconnect, unless it is more than ten minutes ahead', () => {
    const { edits } = setup()
    const made = () => {
      const { seq } = edits.make(1, 9, 1, 0)!
      edits.acknowledge(seq, 0)
      return seq
    }
    expect([made(), made()]).toEqual([5, 6])
    edits.setNextSeq(3) // by a clock that is behind
    expect(made()).toBe(7)
    edits.setNextSeq(20)
    expect(made()).toBe(20)
    edits.skipTo(6e8 + 9)
    edits.setNextSeq(9)
    expect(made()).toBe(6e8 + 9)
    edits.setNextSeq(9)
    expect(made()).toBe(9)
  })

  test('are not made where nothing is loaded', () => {
    const { edits } = setup()
    expect(edits.make(1000, 9, 1, 0)).toBeNull()
    expect(edits.waiting).toHaveLength(0)
  })
})

test('the clock runs with the world’s day', () => {
  const clock = new Clock()
  clock.set(1430, 1000, 144_000) // 100 ms a game minute
  expect(clock.minutesAt(1000)).toBe(1430)
  expect(clock.minutesAt(2500)).toBeCloseTo(5)
  expect(clockText(5.9)).toBe('00:05')
})

test('settings are restored, invalid ones are not', () => {
  const store = storage()
  const settings = { ...defaults(false), name: 'ada', view: 9, guest: true, skin: 0x83fa10cd }
  saveSettings(store, settings)
  expect(loadSettings(store, defaults(false))).toEqual(settings)
  store.setItem('voxeld.settings', '{"view":99,"sensitivity":"fast","hotbar":[1,2],"guest":"yes","name":7,"skin":-1}')
  expect(loadSettings(store, defaults(true))).toEqual(defaults(true))
  store.setItem('voxeld.settings', '{"name":"ada"}') // from before there were hints
  expect(loadSettings(store, defaults(true)).hints).toBe(false)
  store.setItem('voxeld.settings', 'not json')
  expect(loadSettings(store, defaults(false))).toEqual(defaults(false))
})
