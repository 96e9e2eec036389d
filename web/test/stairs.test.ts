import { expect, test } from 'vitest'
import { KINDS } from '../src/world/blocks'
import { placeStairs } from '../src/world/stairs'

const STAIRS = KINDS.findIndex(({ name }) => name === 'Stone stairs')
const BRICK = KINDS.findIndex(({ name }) => name === 'Brick stairs')
const SHAPE = KINDS[STAIRS]?.shape ?? 0
const TURN = { left: [3, 2, 0, 1], right: [2, 3, 1, 0] }
const SIDES = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
] as const

/** Returns the shape of stairs among others, by the directions that those go or −1, as Minecraft has it. */
function cornerOf(direction: number, facing: readonly number[]): number {
  const at = (side: number) => facing[side] ?? -1
  // a corner has the name of the first of its directions, clockwise
  const corner = (of: number, first: number) => SHAPE + first + (TURN.left[direction] === of ? of : direction)
  const front = at(direction)
  const back = at(direction ^ 1)
  if (front >= 0 && front >> 1 !== direction >> 1 && at(front ^ 1) !== direction) return corner(front, 4)
  if (back >= 0 && back >> 1 !== direction >> 1 && at(back) !== direction) return corner(back, 8)
  return SHAPE + direction
}

test('stairs become the corners that they become in Minecraft, whatever is around them', () => {
  for (let around = 0; around < 4 * 5 ** 4; around++) {
    const direction = around % 4
    const facing = [0, 1, 2, 3].map((side) => (Math.floor(around / 4 / 5 ** side) % 5) - 1)
    const land = new Map(facing.map((to, side) => [SIDES[side]?.join(), to < 0 ? 1 : BRICK + to]))
    const get = (x: number, y: number, z: number) => (y === 5 ? (land.get([x, z].join()) ?? 0) : BRICK)
    const [placed] = placeStairs({ get }, 0, 5, 0, STAIRS + direction)
    expect(placed).toMatchObject({ x: 0, z: 0 })
    const { base, shape } = KINDS[placed?.block ?? 0] ?? {}
    expect([base, shape], `${direction} among ${facing.join()}`).toEqual([STAIRS, cornerOf(direction, facing)])
  }
})

test('stairs beside some that are placed become a corner', () => {
  const land = new Map([['0,0', BRICK]]) // up towards +x
  const get = (x: number, y: number, z: number) => (y === 5 ? (land.get([x, z].join()) ?? 0) : 0)
  const changes = placeStairs({ get }, 1, 5, 0, STAIRS + 2)
  expect(changes.map(({ x, z }) => [x, z])).toEqual([
    [1, 0],
    [0, 0],
  ])
  expect(changes.map(({ block }) => KINDS[block]?.shape)).toEqual([SHAPE + 2, SHAPE + 4])
  expect(placeStairs({ get }, 1, 5, 0, STAIRS)).toHaveLength(1)
})
