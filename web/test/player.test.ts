import { describe, expect, test } from 'vitest'
import { Body, HALF_WIDTH, bodyTouchesBlock, overlapsSolid, type Intent } from '../src/player/body'
import { anglesOf, castBody, castRay, direction } from '../src/player/ray'
import { boxesOf, isAimable } from '../src/world/blocks'
import { VOID } from '../src/world/world'

const STONE = 1
const WATER = 5
const STILL: Intent = { forward: 0, right: 0, up: false, down: false, fast: false, autoJump: false }

function blocks(get: (x: number, y: number, z: number) => number) {
  return { get }
}

function walk(body: Body, world: ReturnType<typeof blocks>, intent: Partial<Intent>, seconds: number): void {
  for (let t = 0; t < seconds; t += 1 / 60) {
    body.step(world, { ...STILL, ...intent }, 1 / 60)
    expect(overlapsSolid(world, body.x, body.y, body.z), 'the body is inside a block').toBe(false)
  }
}

function standing(x: number, y: number, z: number): Body {
  const body = new Body()
  body.place(x, y, z)
  return body
}

const plain = blocks((_x, y) => (y < 10 ? STONE : 0))

describe('body', () => {
  test('falls onto the ground and stands', () => {
    const body = standing(0.5, 20, 0.5)
    walk(body, plain, {}, 2)
    expect(body.onGround).toBe(true)
    expect(body.y).toBeCloseTo(10, 2)
  })

  test.each([
    ['walking', false, 0.6],
    ['flying', true, 1],
  ])('is still soon after %s, so that no more poses are sent', (_, flying, seconds) => {
    const body = standing(0.5, 10, 0.5)
    body.flying = flying
    walk(body, plain, { forward: 1, up: flying }, 1)
    walk(body, plain, {}, seconds)
    const { x, y, z } = body
    walk(body, plain, {}, 1)
    expect([body.x, body.y, body.z]).toEqual([x, y, z])
  })

  test.each([
    [0, [0, 1]],
    [Math.PI / 2, [-1, 0]],
    [Math.PI, [0, -1]],
    [-Math.PI / 2, [1, 0]],
  ])('yaw %f walks along the protocol’s direction', (yaw, [dx, dz]) => {
    const body = standing(0.5, 10, 0.5)
    body.yaw = yaw
    walk(body, plain, { forward: 1 }, 1)
    expect(Math.sign(Math.round(body.x - 0.5))).toBe(dx)
    expect(Math.sign(Math.round(body.z - 0.5))).toBe(dz)
    expect(Math.hypot(body.x - 0.5, body.z - 0.5)).toBeGreaterThan(3.5)
  })

  test('stops at a wall and slides along it', () => {
    const world = blocks((_x, y, z) => (y < 10 || z >= 5 ? STONE : 0))
    const body = standing(0.5, 10, 0.5)
    body.yaw = -Math.PI / 4 // towards +x +z
    walk(body, world, { forward: 1 }, 3)
    expect(body.z).toBeLessThanOrEqual(5 - HALF_WIDTH)
    expect(body.z).toBeGreaterThan(5 - HALF_WIDTH - 0.01)
    expect(body.x).toBeGreaterThan(6)
  })

  test('jumps onto one block, not onto two', () => {
    for (const [tall, reached] of [
      [1, true],
      [2, false],
    ] as const) {
      const world = blocks((_x, y, z) => (y < 10 || (z >= 3 && y < 10 + tall) ? STONE : 0))
      const body = standing(0.5, 10, 0.5)
      walk(body, world, { forward: 1, up: true }, 2)
      expect(body.z > 3.5, `${tall} high`).toBe(reached)
    }
  })

  test('jumps as high and as far at any frame rate', () => {
    for (const frames of [20, 30, 60, 144, 240]) {
      const body = standing(0.5, 10, 0.5)
      walk(body, plain, { forward: 1 }, 1)
      const from = body.z
      let apex = 0
      let landed = false
      for (let i = 0; !landed; i++) {
        body.step(plain, { ...STILL, forward: 1, up: i === 0 }, 1 / frames)
        apex = Math.max(apex, body.y - 10)
        landed = body.onGround
      }
      expect(Math.abs(apex - 1.275), `${apex} at ${frames} frames/s`).toBeLessThan(0.03)
      expect(Math.abs(body.z - from - 2.7), `${body.z - from} at ${frames} frames/s`).toBeLessThan(0.25)
    }
  })

  test('stands on the ground in every frame, at any frame rate', () => {
    for (const frames of [60, 240, 1000]) {
      const body = standing(0.5, 10, 0.5)
      walk(body, plain, {}, 1)
      for (let i = 0; i < frames; i++) {
        body.step(plain, STILL, 1 / frames)
        expect(body.onGround, `frame ${i} of ${frames}`).toBe(true)
      }
    }
  })

  test.each([
    ['a block', 1, true, true],
    ['a block, unless the player does not want that', 1, false, false],
    ['not two blocks', 2, true, false],
  ])('jumps by itself onto %s', (_, tall, autoJump, reached) => {
    const world = blocks((_x, y, z) => (y < 10 || (z >= 3 && y < 10 + tall) ? STONE : 0))
    const body = standing(0.5, 10, 0.5)
    let highest = 0
    for (let i = 0; i < 120; i++) {
      body.step(world, { ...STILL, forward: 1, autoJump }, 1 / 60)
      highest = Math.max(highest, body.y)
    }
    expect(body.z > 3.5).toBe(reached)
    if (!reached) expect(highest, 'does not jump in vain').toBeLessThan(10.01)
  })

  test('does not jump by itself below a ceiling', () => {
    const world = blocks((_x, y, z) => (y < 10 || y === 12 || (z >= 3 && y < 11) ? STONE : 0))
    const body = standing(0.5, 10, 0.5)
    for (let i = 0; i < 120; i++) {
      body.step(world, { ...STILL, forward: 1, autoJump: true }, 1 / 60)
      expect(body.y).toBeLessThan(10.01)
    }
  })

  test('never tunnels, however fast it falls', () => {
    const world = blocks((_x, y) => (y === 10 ? STONE : 0))
    const body = standing(0.5, 200, 0.5)
    for (let t = 0; t < 6; t += 0.05) body.step(world, STILL, 0.05)
    expect(body.y).toBeCloseTo(11, 2)
  })

  test('does not enter unloaded land', () => {
    const world = blocks((_x, y, z) => (z >= 4 ? VOID : y < 10 ? STONE : 0))
    const body = standing(0.5, 10, 0.5)
    walk(body, world, { forward: 1 }, 2)
    expect(body.z).toBeLessThan(4)
  })

  test('flies without falling, sinks and lands', () => {
    const body = standing(0.5, 15, 0.5)
    body.flying = true
    walk(body, plain, {}, 1)
    expect(body.y).toBe(15)
    walk(body, plain, { down: true }, 3)
    expect(body.flying).toBe(false)
    expect(body.y).toBeCloseTo(10, 1)
  })

  test('swims up to the surface', () => {
    const world = blocks((_x, y) => (y < 10 ? STONE : y < 18 ? WATER : 0))
    const body = standing(0.5, 11, 0.5)
    walk(body, world, { up: true }, 4)
    expect(body.y).toBeGreaterThan(16.5)
    expect(body.y).toBeLessThan(19)
  })

  test('sneaking does not fall off an edge', () => {
    const world = blocks((_x, y, z) => (y < 10 && z < 3 ? STONE : 0))
    const body = standing(0.5, 10, 0.5)
    walk(body, world, {}, 0.2)
    walk(body, world, { forward: 1, down: true }, 4)
    expect(body.y).toBeCloseTo(10, 2)
    expect(body.z).toBeLessThan(3 + HALF_WIDTH)
  })

  test('stays within the speeds that the server allows', () => {
    const body = standing(0.5, 30, 0.5)
    body.flying = true
    const air = blocks(() => 0)
    walk(body, air, { forward: 1, right: 1, fast: true, up: true }, 2)
    expect(Math.hypot(body.vx, body.vz)).toBeLessThan(20)
    expect(body.vy).toBeLessThan(20)
  })

  test('touches the blocks that it fills', () => {
    const stands = { x: 0.5, y: 10, z: 0.5 }
    expect(bodyTouchesBlock(stands, 0, 10, 0, STONE)).toBe(true)
    expect(bodyTouchesBlock(stands, 0, 11, 0, STONE)).toBe(true)
    expect(bodyTouchesBlock(stands, 0, 12, 0, STONE)).toBe(false)
    expect(bodyTouchesBlock(stands, 0, 9, 0, STONE)).toBe(false)
    expect(bodyTouchesBlock(stands, 1, 10, 0, STONE)).toBe(false)
    expect(bodyTouchesBlock({ ...stands, x: 0.8 }, 1, 10, 0, STONE)).toBe(true)
    expect(bodyTouchesBlock(stands, 0, 10, 0, WATER)).toBe(false)
  })
})

describe('hits', () => {
  test('a ray meets a body where it is', () => {
    const feet = { x: 0, y: 10, z: 5 }
    expect(castBody([0, 11, 0], [0, 0, 1], feet)).toBeCloseTo(4.7)
    expect(castBody([0.29, 11.79, 0], [0, 0, 1], feet)).toBeCloseTo(4.7)
    expect(castBody([0.31, 11, 0], [0, 0, 1], feet)).toBeNull()
    expect(castBody([0, 11.81, 0], [0, 0, 1], feet)).toBeNull()
    expect(castBody([0, 11, 0], [0, 0, -1], feet)).toBeNull() // behind the camera
    expect(castBody([0, 14, 5], [0, -1, 0], feet)).toBeCloseTo(2.2)
    expect(castBody([0, 11, 5], [0, 0, 1], feet)).toBeNull() // the ray starts inside the body
  })

  test('a hit knocks the body back, away from the attacker, within the speeds that the server allows', () => {
    const body = new Body()
    body.place(1, 10, 1)
    body.knockBack(0, 1)
    expect(body.vx).toBeGreaterThan(3)
    expect(body.vz).toBeCloseTo(0)
    expect(body.vy).toBeGreaterThan(0)
    expect(Math.hypot(body.vx, body.vz)).toBeLessThan(20)
    body.place(1, 10, 1)
    body.knockBack(1, 1) // from the body's own position
    expect([body.vx, body.vz]).toEqual([0, 0])
  })
})

describe('ray', () => {
  const one = blocks((x, y, z) => (x === 4 && y === 5 && z === 6 ? STONE : 0))

  test('hits the block it aims at, on the face in front', () => {
    for (const [from, normal] of [
      [
        [0.5, 5.5, 6.5],
        [-1, 0, 0],
      ],
      [
        [8.5, 5.5, 6.5],
        [1, 0, 0],
      ],
      [
        [4.5, 9.5, 6.5],
        [0, 1, 0],
      ],
      [
        [4.5, 1.5, 6.5],
        [0, -1, 0],
      ],
      [
        [4.5, 5.5, 2.5],
        [0, 0, -1],
      ],
      [
        [4.5, 5.5, 9.5],
        [0, 0, 1],
      ],
    ] as [[number, number, number], number[]][]) {
      const { yaw, pitch } = anglesOf(4.5 - from[0], 5.5 - from[1], 6.5 - from[2])
      const hit = castRay(one, from, direction(yaw, pitch), 8, (block) => block === STONE)
      expect(hit).toMatchObject({ x: 4, y: 5, z: 6 })
      expect(hit!.normal.map((v) => v + 0)).toEqual(normal)
    }
  })

  test('ends at its reach', () => {
    const stops = (block: number) => block === STONE
    expect(castRay(one, [4.5, 5.5, 0.5], [0, 0, 1], 5.4, stops)).toBeNull()
    expect(castRay(one, [4.5, 5.5, 0.5], [0, 0, 1], 5.6, stops)?.distance).toBeCloseTo(5.5)
  })

  test('meets a smaller box or goes on past it', () => {
    const POPPY = 32
    const meadow = blocks((x, y) => (y < 0 ? STONE : y === 0 && x === 4 ? POPPY : 0))
    const aim = (origin: [number, number, number], to: [number, number, number]) => {
      const { yaw, pitch } = anglesOf(to[0] - origin[0], to[1] - origin[1], to[2] - origin[2])
      return castRay(meadow, origin, direction(yaw, pitch), 8, isAimable, boxesOf)
    }
    const met = aim([2.5, 0.5, 0.5], [4.5, 0.5, 0.5])
    expect(met).toMatchObject({ x: 4, y: 0, z: 0 })
    expect(met!.normal.map((v) => v + 0)).toEqual([-1, 0, 0])
    expect(met!.distance).toBeCloseTo(1.65)
    expect(aim([4.05, 3, 0.5], [4.05, 0, 0.5])).toMatchObject({ x: 4, y: -1, z: 0, normal: [0, 1, 0] }) // beside the stalks
    expect(aim([4.5, 3, 0.5], [4.5, 0, 0.5])!.distance).toBeCloseTo(2.2) // on their tips
    expect(aim([4.5, 0.5, 0.5], [9, 0.5, 0.5])).toMatchObject({ x: 4, y: 0, z: 0, distance: 0 }) // from among them
    expect(aim([2.5, 0.9, 0.5], [9, 0.9, 0.5])).toBeNull() // over them
  })

  test('visits every block along a slanted way', () => {
    const seen: [number, number, number][] = []
    const world = blocks((x, y, z) => {
      seen.push([x, y, z])
      return 0
    })
    castRay(
      world,
      [0.5, 0.5, 0.5],
      direction(...(Object.values(anglesOf(1, 0.3, 2)) as [number, number])),
      10,
      () => false,
    )
    for (const [i, [x, y, z]] of seen.slice(1).entries()) {
      const [beforeX, beforeY, beforeZ] = seen[i]!
      expect(Math.abs(x - beforeX) + Math.abs(y - beforeY) + Math.abs(z - beforeZ)).toBe(1)
    }
    expect(seen.length).toBeGreaterThan(10)
  })
})
