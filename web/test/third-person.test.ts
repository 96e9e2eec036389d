import { describe, expect, test } from 'vitest'
import { transform } from '../src/gl/matrix'
import { Figure } from '../src/render/figure'
import { cameraAround, handOf } from '../src/render/third-person'
import { hash } from '../src/world/hash'

const AIR = 0
const STONE = 1
const NEAR = 0.1 // blocks: half of the near plane's width, at most

const eyes = { x: 0.5, y: 31.62, z: 0.5, yaw: 0, pitch: 0 } // looks towards +z
const blocks = (get: (x: number, y: number, z: number) => number) => ({ get })
const plain = (_x: number, y: number) => (y < 30 ? STONE : AIR)

describe('the camera in third person', () => {
  test('is behind the eyes, or before them and turned around', () => {
    expect(cameraAround(blocks(plain), eyes, false)).toEqual({ ...eyes, z: -3.5 })
    const front = cameraAround(blocks(plain), { ...eyes, pitch: 0.5 }, true)
    expect(front.z).toBeCloseTo(eyes.z + 4 * Math.cos(0.5))
    expect(front.y).toBeCloseTo(eyes.y + 4 * Math.sin(0.5))
    expect([Math.cos(front.yaw), front.pitch]).toEqual([-1, -0.5])
  })

  test('comes nearer before a wall, and stays above the ground', () => {
    const wall = cameraAround(
      blocks((x, y, z) => (z === -2 ? STONE : plain(x, y))),
      eyes,
      false,
    )
    expect(wall.z).toBeGreaterThan(-1 + NEAR)
    expect(wall.z).toBeLessThan(-0.8)
    expect(cameraAround(blocks(plain), { ...eyes, pitch: 1.2 }, false).y).toBeGreaterThan(30 + NEAR)
  })

  test('a block that a corner of the picture would be in counts too', () => {
    // the edge of this block is beside the middle of the way back
    const beside = blocks((x, y, z) => (x === 1 && z === -2 ? STONE : plain(x, y)))
    expect(cameraAround(beside, { ...eyes, x: 0.95 }, false).z).toBeGreaterThan(-1)
    expect(cameraAround(beside, { ...eyes, x: 0.5 }, false).z).toBe(-3.5)
  })

  test('never has a block in the way, or around it', () => {
    for (let seed = 1; seed < 60; seed++) {
      const land = blocks((x, y, z) => (Math.abs(x) + Math.abs(z) > 0 && hash(x, y * 31 + z, seed) < 0.2 ? STONE : AIR))
      const looking = { ...eyes, yaw: seed, pitch: Math.sin(seed) * 1.5 }
      const camera = cameraAround(land, looking, seed % 2 === 0)
      const length = Math.hypot(camera.x - eyes.x, camera.y - eyes.y, camera.z - eyes.z)
      const inside = (part: number) =>
        [-NEAR, NEAR].some((side) => {
          const at = (['x', 'y', 'z'] as const).map((axis) => eyes[axis] + (camera[axis] - eyes[axis]) * part + side)
          return land.get(...(at.map(Math.floor) as [number, number, number])) === STONE
        })
      for (let part = 0; part < 1; part += 0.05) expect(inside(part), `seed ${seed}, ${length} blocks`).toBe(false)
    }
  })
})

function placeOf(figure: Figure) {
  const [x, y, z] = transform(handOf(figure), 0, 0, 0)
  return { x, y, z }
}

test('the block is in the right hand, and follows the arm', () => {
  const figure = new Figure('ada')
  figure.place.splice(0, 4, 10, 30, -7, 0)
  const hanging = placeOf(figure)
  expect(hanging.x).toBeLessThan(10) // its right, as it faces +z
  expect(hanging.y).toBeGreaterThan(30.5)
  expect(hanging.y).toBeLessThan(31)
  figure.limbs[2] = -Math.PI / 2 // the arm points ahead
  const ahead = placeOf(figure)
  expect(ahead.z).toBeGreaterThan(hanging.z + 0.2)
  expect(ahead.y).toBeGreaterThan(hanging.y + 0.4)
  figure.place[3] = Math.PI // turned around
  expect(placeOf(figure).x).toBeGreaterThan(10)
})
