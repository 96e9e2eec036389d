import { expect, test } from 'vitest'
import { LAYERS } from '../src/render/tiles'
import { DOOR, FENCE, GATE, LADDER, SIGN, STAIRS, TORCH, TRAPDOOR } from '../src/world/block-table'
import {
  KINDS,
  PLACEABLE,
  boundsOf,
  boxesOf,
  isClimbable,
  isSign,
  joinSlabs,
  kindOf,
  mirrored,
  otherHalf,
  stateFor,
  turnedRight,
  usedBlock,
} from '../src/world/blocks'

const named = (name: string) => KINDS.findIndex((kind) => kind.name === name)
const EAST = [1, 0, 0]
const WEST = [-1, 0, 0]
const SOUTH = [0, 0, 1]
const NORTH = [0, 0, -1]
const UP = [0, 1, 0]
const DOWN = [0, -1, 0]

test('there are at least 80 blocks to choose from, each in a group and with a name of its own', () => {
  expect(PLACEABLE.length).toBeGreaterThan(80)
  expect(new Set(PLACEABLE.map((block) => kindOf(block).name)).size).toBe(PLACEABLE.length)
  for (const block of PLACEABLE) expect(kindOf(block).group, kindOf(block).name).not.toBe('')
})

test('names, groups and ids are the server’s', () => {
  const ids = [38, 53, 54, 85, 86, 101, 103, 173, 177, 201, 209, 210, 265]
  expect(ids.map((id) => kindOf(id).name)).toEqual([
    'White wool',
    'Pink wool',
    'White concrete',
    'Pink glass',
    'Stone bricks',
    'Stone slab',
    'Stone stairs',
    'Plank fence',
    'Torch',
    'Pine door',
    'Sign',
    'Plank fence gate',
    'Pine trapdoor',
  ])
  expect(KINDS.length).toBe(506)
  expect(kindOf(53).group).toBe('Wool')
  const layers = KINDS.flatMap(({ top, side, bottom }) => [top, side, bottom])
  expect(new Set(layers).size).toBe(LAYERS) // each has a user
})

test('states have the name and the properties of their block', () => {
  KINDS.forEach((kind, id) => {
    expect(kind.base).toBeLessThanOrEqual(id)
    expect(kind.name).toBe(kindOf(kind.base).name)
    expect(kind.group).toBe(kindOf(kind.base).group)
  })
  expect(kindOf(60000).name).toBe('Unknown')
  expect(kindOf(60000)).toMatchObject({ solid: true, opaque: true, placeable: false, breakable: false })
})

test('the low side of stairs is towards the player, wherever they look', () => {
  const stairs = named('Plank stairs')
  expect(kindOf(stairs).shape).toBe(STAIRS)
  const high = (ahead: number[]) => boxesOf(stateFor(stairs, ahead, UP, 0))[1]
  expect(high([0.9, -0.4, 0.1])).toEqual([0.5, 0.5, 0, 1, 1, 1])
  expect(high([-0.9, 0, 0.1])).toEqual([0, 0.5, 0, 0.5, 1, 1])
  expect(high([0.2, 0, 0.9])).toEqual([0, 0.5, 0.5, 1, 1, 1])
  expect(high([0.2, 0, -0.9])).toEqual([0, 0.5, 0, 1, 1, 0.5])
})

test('stairs are upside down under what was clicked, or in the upper half of its side', () => {
  const stairs = named('Plank stairs')
  const upper = stateFor(stairs, WEST, DOWN, 1)
  expect(boxesOf(upper)).toEqual([
    [0, 0.5, 0, 1, 1, 1],
    [0, 0, 0, 0.5, 0.5, 1],
  ])
  expect(kindOf(upper).base).toBe(stairs)
  expect(stateFor(stairs, WEST, SOUTH, 0.7)).toBe(upper)
  expect(stateFor(stairs, WEST, SOUTH, 0.3)).toBe(stairs + 1)
  expect([mirrored(upper, 1), mirrored(stairs + 1, 1)]).toEqual([stairs + 1, upper])
})

// the quarters that are filled beside the slab: of boxes, turned, mirrored
test('turned and mirrored stairs fill what they should', () => {
  const halves = [0.25, 0.75]
  const filled = (block: number, place: (x: number, y: number, z: number) => number[]) =>
    halves.flatMap((x) => halves.flatMap((y) => halves.map((z) => fills(block, place(x, y, z)))))
  const fills = (block: number, [x = 0, y = 0, z = 0]: number[]) =>
    boxesOf(block).some(([x0, y0, z0, x1, y1, z1]) => x0 < x && x < x1 && y0 < y && y < y1 && z0 < z && z < z1)
  const all = [...KINDS.keys()].filter((id) => kindOf(id).base === named('Marble stairs'))
  expect(all).toHaveLength(24)
  for (const block of all) {
    const same = (other: number, place: (x: number, y: number, z: number) => number[]) => {
      expect(kindOf(other).base).toBe(kindOf(block).base)
      expect(filled(other, place)).toEqual(filled(block, (...at) => at))
    }
    same(turnedRight(block), (x, y, z) => [1 - z, y, x])
    same(mirrored(block, 0), (x, y, z) => [1 - x, y, z])
    same(mirrored(block, 1), (x, y, z) => [x, 1 - y, z])
    same(mirrored(block, 2), (x, y, z) => [x, y, 1 - z])
  }
})

test('a slab is put where the player aims, and two are a whole block', () => {
  const slab = named('Plank slab')
  expect(stateFor(slab, NORTH, UP, 0)).toBe(slab)
  expect(stateFor(slab, NORTH, DOWN, 1)).toBe(slab + 1)
  expect(stateFor(slab, NORTH, SOUTH, 0.3)).toBe(slab)
  expect(stateFor(slab, NORTH, SOUTH, 0.7)).toBe(slab + 1)
  expect(joinSlabs(slab, slab, 1)).toBe(named('Planks'))
  expect(joinSlabs(slab + 1, slab, -1)).toBe(named('Planks'))
  expect(joinSlabs(slab, slab, 0)).toBeNull()
  expect(joinSlabs(slab, named('Brick slab'), 1)).toBeNull()
  expect(joinSlabs(named('Planks'), slab, 1)).toBeNull()
  for (const block of PLACEABLE.filter((block) => kindOf(block).group === 'Slabs')) {
    expect(kindOf(joinSlabs(block, block, 1)!).placeable, kindOf(block).name).toBe(true)
  }
})

test('torches and ladders are put onto walls', () => {
  const torch = named('Torch')
  const ladder = named('Ladder')
  expect(stateFor(torch, NORTH, UP, 0)).toBe(torch)
  expect(stateFor(torch, NORTH, DOWN, 0)).toBe(-1)
  expect(stateFor(ladder, NORTH, UP, 0)).toBe(-1)
  // the normal of a wall to the east points west
  expect(boundsOf(stateFor(torch, EAST, WEST, 0))[3]).toBe(1)
  expect(boundsOf(stateFor(ladder, EAST, WEST, 0))).toEqual([15 / 16, 0, 0, 1, 1, 1])
  expect(boundsOf(stateFor(ladder, NORTH, SOUTH, 0))).toEqual([0, 0, 0, 1, 1, 1 / 16])
  expect([kindOf(torch).shape, kindOf(ladder).shape]).toEqual([TORCH, LADDER])
})

test('signs stand, or hang on walls, and face the player', () => {
  const sign = named('Sign')
  expect(kindOf(sign).shape).toBe(SIGN)
  expect([EAST, WEST, SOUTH, NORTH].map((ahead) => stateFor(sign, ahead, UP, 0) - sign)).toEqual([0, 1, 2, 3])
  // the normal of a wall to the east points west
  expect(boundsOf(stateFor(sign, NORTH, WEST, 0))).toEqual([14 / 16, 4 / 16, 0, 1, 12 / 16, 1])
  for (let state = sign; state < sign + 8; state++)
    expect([isSign(state), kindOf(state).solid, usedBlock(state), isClimbable(state)]).toEqual([
      true,
      false,
      null,
      false,
    ])
  expect([named('Torch') + 4, named('Ladder')].map(isSign)).toEqual([false, false])
  expect(turnedRight(sign + 4)).toBe(sign + 6)
})

test('a door is two halves that open and close', () => {
  const door = named('Door')
  expect(kindOf(door).shape).toBe(DOOR)
  for (let state = door; state < door + 4; state++) {
    expect(usedBlock(state)).toBe(state + 4)
    expect(usedBlock(state + 4)).toBe(state)
    expect([kindOf(state).solid, kindOf(state + 4).solid]).toEqual([true, false])
  }
  expect(usedBlock(named('Planks'))).toBeNull()
  const stack = { get: (_x: number, y: number) => (y >= 3 && y < 7 ? door : 0) }
  expect([3, 4, 5, 6].map((y) => otherHalf(stack, 0, y, 0))).toEqual([4, 3, 6, 5])
  expect(otherHalf({ get: (_x, y) => (y === 3 ? door : 0) }, 0, 3, 0)).toBeNull()
  expect(otherHalf({ get: () => 1 }, 0, 3, 0)).toBeNull()
})

test('a gate stands across, opens and closes, and has no second half', () => {
  const gate = named('Pine plank fence gate')
  expect(kindOf(gate).shape).toBe(GATE)
  expect([EAST, WEST, SOUTH, NORTH].map((ahead) => stateFor(gate, ahead, UP, 0) - gate)).toEqual([0, 1, 2, 3])
  expect(boundsOf(stateFor(gate, EAST, UP, 0))).toEqual([7 / 16, 5 / 16, 0, 9 / 16, 1, 1])
  for (let state = gate; state < gate + 4; state++) {
    expect([usedBlock(state), usedBlock(state + 4)]).toEqual([state + 4, state])
    expect([kindOf(state).solid, kindOf(state + 4).solid]).toEqual([true, false])
  }
  expect(otherHalf({ get: () => gate }, 0, 3, 0)).toBeNull()
})

test('a trapdoor hangs on the wall that was clicked, or on that behind, and is climbed when it is open', () => {
  const trapdoor = named('Trapdoor')
  expect(kindOf(trapdoor).shape).toBe(TRAPDOOR)
  const open = (state: number) => usedBlock(state) ?? 0
  // the normal of a wall to the east points west
  expect(boundsOf(open(stateFor(trapdoor, NORTH, WEST, 0.2)))).toEqual([13 / 16, 0, 0, 1, 1, 1])
  expect(boundsOf(open(stateFor(trapdoor, NORTH, UP, 0)))).toEqual([0, 0, 0, 1, 1, 3 / 16])
  expect(boundsOf(stateFor(trapdoor, NORTH, WEST, 0.2))).toEqual([0, 0, 0, 1, 3 / 16, 1])
  for (const upper of [stateFor(trapdoor, NORTH, WEST, 0.8), stateFor(trapdoor, NORTH, DOWN, 1)]) {
    expect(boundsOf(upper)).toEqual([0, 13 / 16, 0, 1, 1, 1])
    expect([open(open(upper)), kindOf(open(upper)).base, mirrored(upper, 1)]).toEqual([upper, trapdoor, upper - 4])
  }
  for (let state = trapdoor; state < trapdoor + 16; state++) {
    const closed = state < trapdoor + 8
    expect([isClimbable(state), kindOf(state).solid]).toEqual([!closed, closed])
  }
})

test('bodies stop at the whole of a fence', () => {
  const fence = named('Plank fence')
  expect(kindOf(fence).shape).toBe(FENCE)
  expect(boxesOf(fence)).toEqual([[0, 0, 0, 1, 1, 1]])
})
