import { afterEach, expect, test, vi } from 'vitest'
import type { ChunkAddress } from '../src/net/protocol'
import { Avatars, isAround } from '../src/render/avatars'
import { NameTags, findClear } from '../src/render/name-tags'
import { World } from '../src/world/world'

afterEach(() => {
  vi.unstubAllGlobals()
})

test('a figure around the camera is not drawn, one beside it is', () => {
  const feet = { x: 10, y: 64, z: -5 }
  const at = (x: number, y: number, z: number) => isAround(feet, { x: feet.x + x, y: feet.y + y, z: feet.z + z })
  expect(at(0, 1.62, 0)).toBe(true) // both stand in one place
  expect(at(0.4, 1.62, 0.4)).toBe(true)
  expect(at(0, -0.5, 0)).toBe(true) // the camera is just below
  expect(at(0, 2.5, 0)).toBe(true) // or just above
  expect(at(0.5, 1.62, 0.5)).toBe(false)
  expect(at(0, 1.62, -0.7)).toBe(false)
  expect(at(0, -0.7, 0)).toBe(false)
  expect(at(0, 2.7, 0)).toBe(false)
})

test('a player is removed by leaving the chunk that they entered last, and by no other', () => {
  vi.stubGlobal('document', { createElement: () => ({}) }) // a canvas for name tags, which are not drawn here
  const avatars = new Avatars(new World())
  const bob = { player: 'b0', name: 'bob', x: 32.1, y: 12, z: 1, yaw: 0, pitch: 0 }
  const before: ChunkAddress = [0, 0]
  const after: ChunkAddress = [1, 0]
  avatars.enter(bob, before, 0)
  avatars.enter(bob, after, 50)
  avatars.move({ ...bob, x: 31.9 }, 60)
  avatars.leave('b0', before)
  expect(avatars.list()).toHaveLength(1)
  avatars.leave('b0', after)
  expect(avatars.list()).toEqual([])
})

test('a player who enters again in another stance is shown in it, and not anew', () => {
  const context = new Proxy({}, { get: () => () => ({ width: 60 }), set: () => true }) // of a canvas
  vi.stubGlobal('document', { createElement: () => ({ getContext: () => context }) })
  const avatars = new Avatars(new World())
  const show = vi.fn<(held: { held: number; figure: { sneaks: boolean }; tag: { faint: boolean } }[]) => void>()
  avatars.held = { show: show as never }
  const bob = { player: 'b0', name: 'bob', x: 3, y: 12, z: 1, yaw: 0, pitch: 0 }
  const shown = () => {
    avatars.update(0, 0.05, { x: 0, y: 12, z: 0, yaw: 0, pitch: 0 }, 0, 0)
    return show.mock.lastCall![0][0]!
  }
  avatars.enter({ ...bob, stance: { held: 7, sneaks: true } }, [0, 0], 0)
  const first = shown()
  expect([first.held, first.figure.sneaks, first.tag.faint]).toEqual([7, true, true])
  avatars.enter(bob, [0, 0], 50)
  const again = shown()
  expect(again).toBe(first)
  expect([again.held, again.figure.sneaks, again.tag.faint]).toEqual([0, false, false])
  expect(avatars.list()).toMatchObject([{ held: 0, sneaks: false }])
})

test('of tags in one place the nearest is shown, and what nearer ones hide hides nothing', () => {
  const box = (left: number, wasClear = true, bottom = 0) => ({
    left,
    right: left + 10,
    bottom,
    top: bottom + 2,
    wasClear,
  })
  expect(findClear([box(0), box(1), box(8), box(20), box(0, true, 3)])).toEqual([true, false, true, true, true])
  // between the two bounds it stays as it was
  expect(findClear([box(0), box(7.5, true)])).toEqual([true, true])
  expect(findClear([box(0), box(7.5, false)])).toEqual([true, false])
  expect(findClear([box(0), box(9, false)])).toEqual([true, true])
})

test('somebody behind the camera hides no names', () => {
  const context = new Proxy({}, { get: () => () => ({ width: 60 }), set: () => true }) // of a canvas; the text's width matters
  vi.stubGlobal('document', { createElement: () => ({ getContext: () => context }) })
  const at = (z: number) => ({
    text: 'bob',
    guest: false,
    colour: '#fff',
    x: 0,
    y: 2,
    z,
    distance: Math.abs(z),
    faint: false,
    shown: 1,
  })
  const [ahead, behind, hidden] = [at(8), at(-2), at(9)]
  new NameTags().show([ahead, behind, hidden], { x: 0, y: 1.6, z: 0, yaw: 0, pitch: -0.3 }, 1)
  expect([ahead.shown, behind.shown, hidden.shown]).toEqual([1, 1, 0])
})
