import { expect, test } from 'vitest'
import { isAround } from '../src/render/avatars'

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
