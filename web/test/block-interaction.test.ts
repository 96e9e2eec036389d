import { beforeEach, describe, expect, test } from 'vitest'
import { Body, EYE } from '../src/player/body'
import { BlockInteraction, LEFT, RIGHT, type TargetPlayer } from '../src/player/block-interaction'
import { anglesOf } from '../src/player/ray'
import { AIR } from '../src/world/blocks'
import type { World } from '../src/world/world'
import { worldOf } from './columns'

const STONE = 1
const BRICK = 19
const POPPY = 32
const DAISY = 35
const REEDS = 37

describe('hands and plants', () => {
  let world: World
  let body: Body
  let hands: BlockInteraction
  let inHand: number
  let edits: number[][]
  let bob: TargetPlayer | null
  let hits: string[]

  beforeEach(() => {
    world = worldOf(1, (x, y, z) => (y < 10 ? STONE : x === 3 && z === 5 ? (y === 10 ? POPPY : 0) : 0))
    body = new Body()
    body.place(3.5, 10, 1.5)
    edits = []
    bob = null
    hits = []
    hands = new BlockInteraction(world, body, {
      edit: (x, y, z, block) => {
        edits.push([x, y, z, block])
        return world.set(x, y, z, block)
      },
      inHand: () => inHand,
      pick: () => {},
      anyoneTouches: () => false,
      person: (_origin, _dir, reach) => (bob && bob.distance <= reach ? bob : null),
      hit: ({ player }) => hits.push(player),
      broke: () => {},
      placed: () => {},
      swing: () => {},
    })
  })

  function act(button: number, x: number, y: number, z: number): number[][] {
    const { yaw, pitch } = anglesOf(x - body.x, y - body.y - EYE, z - body.z)
    body.yaw = yaw
    body.pitch = pitch
    hands.press(button, 0)
    return edits.splice(0)
  }

  test('a block goes where the plant is, another flower too', () => {
    inHand = DAISY
    expect(act(RIGHT, 3.5, 10.4, 5.5)).toEqual([[3, 10, 5, DAISY]])
    inHand = BRICK
    expect(act(RIGHT, 3.5, 10.4, 5.5)).toEqual([[3, 10, 5, BRICK]])
  })

  test('a plant wants ground, or its like, below it', () => {
    inHand = POPPY
    expect(act(RIGHT, 1.5, 10, 5.5)).toEqual([[1, 10, 5, POPPY]])
    world.set(6, 12, 5, STONE)
    expect(act(RIGHT, 6, 12.5, 5.5)).toEqual([]) // at the side of a block in the air
    inHand = REEDS
    expect(act(RIGHT, 0.5, 10, 3.5)).toEqual([[0, 10, 3, REEDS]])
    expect(act(RIGHT, 0.5, 10.79, 3.5)).toEqual([[0, 11, 3, REEDS]])
  })

  test('a click hits the player who stands before the block, once', () => {
    bob = { player: 'ef', name: 'bob', distance: 1.5 }
    expect(act(LEFT, 3.5, 9.5, 5)).toEqual([])
    expect(hits).toEqual(['ef'])
    hands.hold(LEFT, 10_000)
    expect([hits.length, edits.length]).toEqual([1, 0])
    bob.distance = 7 // behind the block
    expect(act(LEFT, 3.5, 9.5, 5).length).toBe(1)
    expect(hits.length).toBe(1)
  })

  test('what grows on a broken block goes with it', () => {
    world.set(5, 10, 5, REEDS)
    world.set(5, 11, 5, REEDS)
    world.set(5, 9, 4, AIR)
    expect(act(LEFT, 5.5, 9.5, 5)).toEqual([[5, 9, 5, AIR], [5, 10, 5, AIR], [5, 11, 5, AIR]])
    expect(act(LEFT, 3.5, 10.4, 5.5)).toEqual([[3, 10, 5, AIR]])
  })
})
