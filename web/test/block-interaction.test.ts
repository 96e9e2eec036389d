import { beforeEach, describe, expect, test } from 'vitest'
import { Body, EYE, bodyTouchesBlock } from '../src/player/body'
import { BlockInteraction, LEFT, MIDDLE, RIGHT, type TargetPlayer } from '../src/player/block-interaction'
import { anglesOf } from '../src/player/ray'
import { AIR, KINDS, WATER } from '../src/world/blocks'
import type { World } from '../src/world/world'
import { worldOf } from './columns'

const STONE = 1
const BEDROCK = 15
const BRICK = 19
const POPPY = 32
const DAISY = 35
const REEDS = 37

describe('block interaction', () => {
  let world: World
  let body: Body
  let interaction: BlockInteraction
  let selectedBlock: number
  let edits: number[][]
  let followers: number[][]
  let bob: TargetPlayer | null
  let hits: string[]
  let picked: number[]
  let written: number[][]
  let stander: { x: number; y: number; z: number } | null
  let claimed: number[][]

  beforeEach(() => {
    world = worldOf(1, (x, y, z) => (y < 10 ? STONE : x === 3 && z === 5 ? (y === 10 ? POPPY : 0) : 0))
    body = new Body()
    body.place(3.5, 10, 1.5)
    edits = []
    followers = []
    bob = null
    hits = []
    picked = []
    written = []
    stander = null
    claimed = []
    interaction = new BlockInteraction(world, body, {
      edit: (x, y, z, block, follows) => {
        edits.push([x, y, z, block])
        if (follows) followers.push([x, y, z])
        return world.set(x, y, z, block)
      },
      selectedBlock: () => selectedBlock,
      pick: (block) => picked.push(block),
      mayBuild: (...place) => !claimed.some((other) => other.join() === place.join()),
      anyoneTouches: (x, y, z, block) => stander !== null && bodyTouchesBlock(stander, x, y, z, block),
      castPlayers: (_origin, _dir, reach) => (bob && bob.distance <= reach ? bob : null),
      hit: ({ player }) => hits.push(player),
      broke: () => {},
      placed: () => {},
      swing: () => {},
      write: (x, y, z) => written.push([x, y, z]),
    })
  })

  function act(button: number, x: number, y: number, z: number): number[][] {
    const { yaw, pitch } = anglesOf(x - body.x, y - body.y - EYE, z - body.z)
    body.yaw = yaw
    body.pitch = pitch
    interaction.press(button, 0)
    return edits.splice(0)
  }

  test('a block, or another flower, replaces a plant', () => {
    selectedBlock = DAISY
    expect(act(RIGHT, 3.5, 10.4, 5.5)).toEqual([[3, 10, 5, DAISY]])
    selectedBlock = BRICK
    expect(act(RIGHT, 3.5, 10.4, 5.5)).toEqual([[3, 10, 5, BRICK]])
  })

  test('a plant needs ground, or a plant of its kind, below it', () => {
    selectedBlock = POPPY
    expect(act(RIGHT, 1.5, 10, 5.5)).toEqual([[1, 10, 5, POPPY]])
    world.set(6, 12, 5, STONE)
    expect(act(RIGHT, 6, 12.5, 5.5)).toEqual([]) // at the side of a floating block
    selectedBlock = REEDS
    expect(act(RIGHT, 0.5, 10, 3.5)).toEqual([[0, 10, 3, REEDS]])
    expect(act(RIGHT, 0.5, 10.79, 3.5)).toEqual([[0, 11, 3, REEDS]])
  })

  test('a sign that was placed, or is clicked, can be written on', () => {
    const sign = KINDS.findIndex(({ name }) => name === 'Sign')
    selectedBlock = sign
    const south = sign + 2
    expect(act(RIGHT, 3.5, 10, 4.5)).toEqual([[3, 10, 4, south]])
    selectedBlock = STONE
    expect(act(RIGHT, 3.5, 10.6, 4.5)).toEqual([])
    expect(written).toEqual([
      [3, 10, 4],
      [3, 10, 4],
    ])
    interaction.update(10_000, (button) => button === RIGHT)
    expect(edits).toEqual([])
  })

  test('a gate is opened by another click, alone, and not by the one that places it', () => {
    const gate = KINDS.findIndex(({ name }) => name === 'Plank fence gate') + 2 // for those who look south
    selectedBlock = gate - 2
    expect(act(RIGHT, 3.5, 10, 4.5)).toEqual([[3, 10, 4, gate]])
    interaction.update(10_000, (button) => button === RIGHT)
    expect(edits).toEqual([])
    world.set(3, 11, 4, gate)
    expect(act(RIGHT, 3.5, 10.9, 4.5)).toEqual([[3, 10, 4, gate + 4]])
    expect(act(RIGHT, 3.1, 10.9, 4.6)).toEqual([[3, 10, 4, gate]]) // at a wing
    expect(act(LEFT, 3.5, 10.9, 4.5)).toEqual([[3, 10, 4, AIR]])
  })

  test('stairs make those at their end a corner', () => {
    const stairs = KINDS.findIndex(({ name }) => name === 'Stone stairs')
    world.set(2, 10, 4, stairs) // up towards +x
    selectedBlock = stairs
    const corner = KINDS.findIndex(({ base, shape }) => base === stairs && shape === (KINDS[stairs]?.shape ?? 0) + 4)
    const both = [
      [3, 10, 4, stairs + 2],
      [2, 10, 4, corner],
    ]
    const again = () => {
      world.set(3, 10, 4, AIR)
      world.set(2, 10, 4, stairs)
    }
    expect(act(RIGHT, 3.5, 10, 4.5)).toEqual(both)
    again()
    stander = { x: 2.2, y: 10.5, z: 4.5 } // on their low side, which stays as it is
    expect(act(RIGHT, 3.5, 10, 4.5)).toEqual(both)
    again()
    claimed = [[2, 10, 4]]
    expect(act(RIGHT, 3.5, 10, 4.5)).toEqual([[3, 10, 4, stairs + 2]])
    expect(followers).toEqual([
      [2, 10, 4],
      [2, 10, 4],
    ])
  })

  test('water is placed like a block, and is removed by those who have some in the hand', () => {
    selectedBlock = WATER
    expect(act(RIGHT, 3.5, 10, 4.5)).toEqual([[3, 10, 4, WATER]])
    expect(act(RIGHT, 3.5, 10.9, 4)).toEqual([[3, 10, 3, WATER]]) // beside the water
    expect(act(LEFT, 3.5, 11, 3.5)).toEqual([[3, 10, 3, AIR]])
    selectedBlock = STONE
    expect(act(LEFT, 3.5, 10, 4.4)).toEqual([[3, 9, 4, AIR]]) // through the water
    selectedBlock = WATER
    world.set(3, 11, 1, WATER) // around the eyes
    expect(act(RIGHT, 5.5, 10, 3.5)).toEqual([[5, 10, 3, WATER]])
    expect(act(RIGHT, 5.5, 10, 3.5)).toEqual([])
  })

  test('a click hits the player in front of the block, once', () => {
    bob = { player: 'ef', name: 'bob', distance: 1.5 }
    expect(act(LEFT, 3.5, 9.5, 5)).toEqual([])
    expect(hits).toEqual(['ef'])
    interaction.update(10_000, (button) => button === LEFT)
    expect([hits.length, edits.length]).toEqual([1, 0])
    bob.distance = 7 // behind the block
    expect(act(LEFT, 3.5, 9.5, 5).length).toBe(1)
    expect(hits.length).toBe(1)
  })

  test('a held button repeats, first after a longer pause', () => {
    const held = (button: number) => button === LEFT
    act(LEFT, 3.5, 9.5, 3.5)
    const times: number[] = []
    for (let now = 10; now <= 1000; now += 10) {
      interaction.update(now, held)
      if (edits.splice(0).length > 0) times.push(now)
    }
    expect(times).toEqual([320, 550, 780])
    for (let now = 2000; now <= 3000; now += 10) interaction.update(now, () => false)
    expect(edits).toEqual([])
  })

  test('nothing beyond the reach is touched', () => {
    interaction.reach = 3
    expect(act(LEFT, 3.5, 9.5, 5)).toEqual([])
    interaction.reach = 8
    expect(act(LEFT, 3.5, 9.5, 5)).toHaveLength(1)
  })

  test('bedrock stays', () => {
    world.set(5, 9, 3, BEDROCK)
    expect(act(LEFT, 5.5, 9.9, 3.5)).toEqual([])
  })

  test('no solid block is placed into a player, a plant is', () => {
    selectedBlock = BRICK
    expect(act(RIGHT, 3.5, 10, 1.6)).toEqual([]) // into the player's own body
    stander = { x: 5.5, y: 10, z: 3.5 }
    expect(act(RIGHT, 5.5, 10, 3.5)).toEqual([])
    selectedBlock = POPPY
    expect(act(RIGHT, 5.5, 10, 3.5)).toEqual([[5, 10, 3, POPPY]])
  })

  test('the middle button picks the block that it aims at', () => {
    expect(act(MIDDLE, 5.5, 9.9, 3.5)).toEqual([])
    expect(picked).toEqual([STONE])
    act(MIDDLE, 5.5, 20, 3.5) // the sky
    expect(picked).toEqual([STONE])
  })

  test('plants on a broken block break with it', () => {
    world.set(5, 10, 5, REEDS)
    world.set(5, 11, 5, REEDS)
    world.set(5, 9, 4, AIR)
    expect(act(LEFT, 5.5, 9.5, 5)).toEqual([
      [5, 9, 5, AIR],
      [5, 10, 5, AIR],
      [5, 11, 5, AIR],
    ])
    expect(act(LEFT, 3.5, 10.4, 5.5)).toEqual([[3, 10, 5, AIR]])
  })
})
