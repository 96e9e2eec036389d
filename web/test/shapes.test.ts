// Bodies among slabs, stairs, ladders and doors. The walks are also those of package gameserver/checks, which checks that the server allows
// them: WALKS=write npx vitest run test/shapes.test.ts writes them.

import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { WORDS_PER_QUAD } from '../src/mesh/mesher'
import { Body, overlapsSolid, type Intent } from '../src/player/body'
import { KINDS, isSolid } from '../src/world/blocks'
import { worldOf } from './columns'
import { landOf, meshOf } from './land'

const STILL: Intent = { forward: 0, right: 0, up: false, down: false, fast: false, autoJump: false }
const named = (name: string) => KINDS.findIndex((kind) => kind.name === name)
const SLAB = named('Stone slab')
const STAIRS = named('Stone stairs')
const LADDER = named('Ladder')
const DOOR = named('Door')
const GATE = named('Plank fence gate')

/** Returns a floor of stone below y = 10 with some blocks on it. */
function landWith(blocks: Record<string, number>) {
  return { get: (x: number, y: number, z: number) => (y < 10 ? 1 : (blocks[[x, y, z].join()] ?? 0)) }
}

function bodyAt(x: number, y: number, z: number, yaw: number): Body {
  const body = new Body()
  body.place(x, y, z)
  body.yaw = yaw
  return body
}

function walk(body: Body, land: ReturnType<typeof landWith>, intent: Partial<Intent>, seconds: number): void {
  for (let t = 0; t < seconds; t += 1 / 60) {
    body.step(land, { ...STILL, ...intent }, 1 / 60)
    expect(overlapsSolid(land, body.x, body.y, body.z), 'the body is inside a block').toBe(false)
  }
}

const EAST = -Math.PI / 2 // +x

describe('a body', () => {
  test('walks up slabs and stairs without jumping, and not up whole blocks', () => {
    const steps = landWith({
      '2,10,0': SLAB,
      '3,10,0': STAIRS,
      '4,10,0': 1,
      '4,11,0': STAIRS,
      '5,10,0': 1,
      '5,11,0': 1,
      '5,12,0': 1,
      '5,13,0': 1,
    })
    const body = bodyAt(0.5, 10, 0.5, EAST)
    walk(body, steps, { forward: 1 }, 2)
    expect(body.y).toBeCloseTo(12, 2)
    expect(body.x).toBeCloseTo(5 - 0.3, 2)
    const wall = landWith({ '2,10,0': 1 })
    const other = bodyAt(0.5, 10, 0.5, EAST)
    walk(other, wall, { forward: 1 }, 1)
    expect(other.y).toBeCloseTo(10, 2)
    expect(other.x).toBeCloseTo(2 - 0.3, 2)
  })

  test('does not step up where there is no room for its head', () => {
    const low = landWith({ '2,10,0': SLAB, '2,12,0': 1, '1,12,0': 1 })
    const body = bodyAt(0.5, 10, 0.5, EAST)
    walk(body, low, { forward: 1 }, 1)
    expect(body.x).toBeCloseTo(2 - 0.3, 2)
  })

  test('stands on a lower slab and walks under an upper one with head room', () => {
    const body = bodyAt(2.5, 12, 0.5, EAST)
    walk(body, landWith({ '2,10,0': SLAB }), {}, 1)
    expect(body.y).toBeCloseTo(10.5, 2)
    const other = bodyAt(0.5, 10, 0.5, EAST)
    walk(other, landWith({ '2,11,0': SLAB + 1 }), { forward: 1 }, 1)
    expect(other.x).toBeCloseTo(2 - 0.3, 2)
    walk(other, landWith({ '2,12,0': SLAB + 1 }), { forward: 1 }, 1)
    expect(other.x).toBeGreaterThan(3)
  })

  test('climbs a ladder by walking against it, holds while crouching, and comes down', () => {
    const blocks: Record<string, number> = {}
    for (let y = 10; y < 15; y++) Object.assign(blocks, { [`1,${y},0`]: LADDER, [`2,${y},0`]: 1 })
    const land = landWith(blocks)
    const body = bodyAt(1.5, 10, 0.5, EAST)
    walk(body, land, { forward: 1 }, 1)
    expect(body.y).toBeGreaterThan(12)
    walk(body, land, { down: true }, 0.2)
    const { y } = body
    walk(body, land, { down: true }, 1)
    expect(body.y).toBeCloseTo(y, 1)
    walk(body, land, {}, 2)
    expect(body.y).toBeCloseTo(10, 2)
  })

  test('is stopped by a door and a gate, and not by an open one', () => {
    for (const [open, through] of [
      [0, false],
      [4, true],
    ] as const) {
      const door = { '2,10,0': DOOR + open, '2,11,0': DOOR + open }
      for (const blocks of [door, { '2,10,0': GATE + open } as Record<string, number>]) {
        const body = bodyAt(0.5, 10, 0.5, EAST)
        walk(body, landWith(blocks), { forward: 1 }, 1)
        expect(body.x > 3).toBe(through)
      }
    }
  })
})

test('a body climbs from a ladder through an open trapdoor, and stands on it when it is closed', () => {
  const blocks: Record<string, number> = {}
  for (let x = 2; x < 20; x++) blocks[`${x},13,0`] = 1
  for (let y = 10; y < 13; y++) Object.assign(blocks, { [`1,${y},0`]: LADDER, [`2,${y},0`]: 1 })
  const upper = named('Trapdoor') + 4
  const body = bodyAt(1.5, 10, 0.5, EAST)
  walk(body, landWith({ ...blocks, '1,13,0': upper }), { forward: 1 }, 3)
  expect(body.y).toBeLessThan(13)
  const open = landWith({ ...blocks, '1,13,0': upper + 8 })
  walk(body, open, { forward: 1 }, 2)
  expect(body.y).toBeCloseTo(14, 2)
  const other = bodyAt(1.5, 14, 0.5, EAST)
  walk(other, landWith({ ...blocks, '1,13,0': upper }), {}, 1)
  expect(other.y).toBeCloseTo(14, 2)
})

describe('meshes', () => {
  const meshWith = (blockAt: (x: number, y: number, z: number) => number) => {
    const land = landOf(worldOf(1, blockAt))
    return meshOf(land, land.chunk(0, 0)!, 0)
  }
  const quads = (blocks: [x: number, y: number, z: number, block: number][]) => {
    const { opaque, cutout, water } = meshWith(
      (x, y, z) => blocks.find(([bx, by, bz]) => bx === x && by === y && bz === z)?.[3] ?? 0,
    )
    return (opaque.length + cutout.length + water.length) / WORDS_PER_QUAD
  }

  test('every block shows its textures', () => {
    const parts = meshWith((x, y, z) =>
      x % 2 && y % 2 && z % 2
        ? KINDS[(x >> 1) + 16 * (z >> 1) + 256 * (y >> 1)]
          ? (x >> 1) + 16 * (z >> 1) + 256 * (y >> 1)
          : 0
        : 0,
    )
    const seen = new Set<number>()
    for (const words of [parts.opaque, parts.cutout, parts.water]) {
      for (let at = 1; at < words.length; at += 2) seen.add((words[at] ?? 0) & 255)
    }
    for (const { side, name } of KINDS.slice(1)) expect(seen.has(side), name).toBe(true)
  })

  test('faces that others hide are left out', () => {
    expect(quads([[5, 5, 5, SLAB]])).toBe(6)
    const two = quads([
      [5, 5, 5, SLAB],
      [6, 5, 5, SLAB],
    ])
    expect(two).toBe(10)
    // the slab's lower face, but not the stone's upper one: a slab hides nothing of a cube
    const onStone = quads([
      [5, 5, 5, SLAB],
      [5, 4, 5, 1],
    ])
    expect(onStone).toBe(11)
    expect(quads([[5, 5, 5, STAIRS]])).toBe(11)
  })
})

interface Walk {
  blocks: [x: number, y: number, z: number, block: number][]
  moves: [x: number, y: number, z: number][]
}

/** Returns numbers that look random, and are always the same, in [0, 1). */
function chances(seed: number): () => number {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) | 0
    return (seed >>> 0) / 2 ** 32
  }
}

/** Walks at random among random blocks. A move is reported every few frames, as the client does. */
function randomWalk(seed: number): Walk {
  const chance = chances(seed)
  const solid = [...KINDS.keys()].filter((id) => id >= SLAB && isSolid(id))
  const blocks: Walk['blocks'] = []
  for (let x = -4; x <= 4; x++) {
    for (let z = -4; z <= 4; z++) {
      for (const y of [10, 11, 12]) {
        if ((x !== 0 || z !== 0) && chance() < 0.25)
          blocks.push([x, y, z, solid[Math.floor(chance() * solid.length)] ?? 1])
      }
    }
  }
  const land = landWith(Object.fromEntries(blocks.map(([x, y, z, block]) => [[x, y, z].join(), block])))
  const body = bodyAt(0.5, 10, 0.5, 0)
  const moves: Walk['moves'] = [[0.5, 10, 0.5]]
  for (let turn = 0; turn < 20; turn++) {
    body.yaw = chance() * 2 * Math.PI
    const intent = { ...STILL, forward: 1, up: chance() < 0.4, fast: chance() < 0.5 }
    const frames = 1 + Math.floor(chance() * 6)
    for (let i = 0; i < 4; i++) {
      for (let frame = 0; frame < frames; frame++) body.step(land, intent, 1 / 40)
      moves.push([body.x, body.y, body.z].map((v) => Math.round(v * 1000) / 1000) as [number, number, number])
    }
  }
  return { blocks, moves }
}

test('walks among shapes are those that the server checks', () => {
  const file = new URL('../../gameserver/checks/testdata/walks.json', import.meta.url)
  const walks = Array.from({ length: 12 }, (_, seed) => randomWalk(seed + 1))
  const text = `[\n${walks.map((walk) => JSON.stringify(walk)).join(',\n')}\n]\n`
  if (process.env['WALKS'] === 'write') writeFileSync(file, text)
  expect(text).toBe(readFileSync(file, 'utf8'))
})
