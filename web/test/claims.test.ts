import { describe, expect, test } from 'vitest'
import { Claims, columnsBetween, overlaps, type Claim } from '../src/world/claims'

describe('claims', () => {
  const home: Claim = { owner: 'ada', name: 'home', min: [-5, 0, 10], max: [4, 1023, 19] }
  const tower: Claim = { owner: 'bob', name: 'tower', min: [5, 60, 10], max: [9, 80, 19], build: true, enter: true }
  const claims = new Claims()

  test('have their blocks, corners included', () => {
    const before = claims.version
    claims.set([home, tower])
    expect(claims.version).toBeGreaterThan(before)
    expect(claims.at(-5, 0, 10)).toBe(home)
    expect(claims.at(4.99, 200.5, 19.99)).toBe(home)
    expect(claims.at(-5.01, 0, 10)).toBeNull()
    expect(claims.at(5, 59.9, 10)).toBeNull()
    expect(claims.at(5, 60, 10)).toBe(tower)
  })

  test('keep others out, and nobody in', () => {
    const outside = { x: -6, y: 70, z: 12 }
    const inside = { x: -4, y: 70, z: 12 }
    expect(claims.keepingOut(outside, inside)).toBe(home)
    expect(claims.keepingOut(inside, { ...inside, x: 0 })).toBeNull()
    expect(claims.keepingOut(inside, outside)).toBeNull()
    expect(claims.keepingOut(outside, { x: 6, y: 70, z: 12 })).toBeNull() // all may enter the tower
  })

  test('are chosen by two corners in any order', () => {
    const box = columnsBetween({ x: 3, z: -2 }, { x: -1, z: 7 }, 96)
    expect(box).toEqual({ min: [-1, 0, -2], max: [3, 95, 7] })
    expect(overlaps(box, home)).toBe(false)
    expect(overlaps(columnsBetween({ x: 3, z: -2 }, { x: -1, z: 10 }, 96), home)).toBe(true)
  })
})
