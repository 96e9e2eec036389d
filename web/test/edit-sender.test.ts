import { beforeEach, describe, expect, test, vi } from 'vitest'
import { EditSender } from '../src/net/edit-sender'
import { Edits } from '../src/world/edits'
import { worldOf } from './columns'
import { fakeNetwork } from './socket'

fakeNetwork()

describe('edit sender', () => {
  let edits: Edits
  let sender: EditSender
  let sent: number[]

  beforeEach(() => {
    edits = new Edits(worldOf(1, () => 0))
    sent = []
    sender = new EditSender(edits, ({ seq }) => sent.push(seq))
  })

  function make(x: number, z: number, block = 1): number {
    const { seq } = edits.make(x, 9, z, block)!
    sender.sendDue()
    return seq
  }

  function settle(seq: number) {
    edits.acknowledge(seq, 0)
    sender.settled(seq)
  }

  /** Makes edits at different places of chunk (x, 0). */
  function fill(x: number, count: number) {
    for (let i = 0; i < count; i++) make(32 * x + (i % 32), Math.floor(i / 32))
  }

  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

  test('edits at different places are sent at once, those at one place one after the other', () => {
    for (const block of [1, 2, 3]) make(1, 1, block)
    make(2, 1)
    expect(sent).toEqual([1, 4])
    settle(1)
    settle(4)
    expect(sent).toEqual([1, 4, 2])
    settle(2)
    expect(sent).toEqual([1, 4, 2, 3])
  })

  test('an edit is at most 63 numbers ahead of the oldest', () => {
    fill(0, 130)
    expect(sent).toEqual(range(1, 64))
    settle(2)
    settle(64)
    expect(sent).toHaveLength(64)
    settle(1)
    expect(sent).toEqual(range(1, 66))
  })

  test('edits in other cells do not wait for one that is never settled, those in its cell do', () => {
    make(0, 0)
    for (let i = 0; i < 100; i++) settle(make(-1 - (i % 32), Math.floor(i / 32)))
    expect(sent).toEqual(range(1, 101))
    make(1, 0)
    make(1, -1)
    expect(sent).toEqual([...range(1, 101), 103])
    settle(1)
    expect(sent.at(-1)).toBe(102)
  })

  test('after a reconnect, older edits in a chunk that comes later go first', () => {
    fill(1, 65)
    fill(0, 65)
    sent = []
    sender.begin()
    sender.chunkLoaded(0, 0)
    expect(sent).toEqual([])
    sender.chunkLoaded(1, 0)
    expect(sent).toEqual(range(1, 64))
    for (const seq of range(1, 130)) settle(seq)
    expect(sent).toEqual(range(1, 130))
  })

  test('after a reconnect, a few newer edits do not wait for older ones in other chunks', () => {
    make(40, 1)
    make(1, 1)
    sent = []
    sender.begin()
    make(-1, 1) // in a chunk without pending edits
    sender.chunkLoaded(0, 0)
    expect(sent).toEqual([3, 2])
  })

  test('a chunk that does not come is waited for 20 s', () => {
    fill(1, 1)
    fill(0, 65)
    sent = []
    sender.begin()
    sender.chunkLoaded(0, 0)
    expect(sent).toEqual(range(2, 64))
    vi.advanceTimersByTime(19_000)
    expect(sent).toHaveLength(63)
    vi.advanceTimersByTime(1000)
    expect(sent).toEqual(range(2, 65))
    settle(2)
    expect(sent).toEqual(range(2, 66))
    sender.chunkLoaded(1, 0)
    expect(sent.at(-1)).toBe(1)
  })

  test('an edit is sent again after a temporary refusal, unless a reconnect does that', () => {
    make(1, 1)
    expect(sender.retry(1)).toBe(true)
    vi.advanceTimersByTime(700)
    expect(sent).toEqual([1, 1])
    sender.retry(1)
    sender.begin()
    vi.advanceTimersByTime(300)
    sender.chunkLoaded(0, 0)
    expect(sent).toEqual([1, 1, 1])
    vi.advanceTimersByTime(700)
    expect(sent).toEqual([1, 1, 1])
  })
})
