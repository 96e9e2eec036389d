import { expect, test } from 'vitest'
import { Program } from '../src/gl/program'
import { Batch, PageList, QuadBuffer, type Pages } from '../src/render/terrain-buffer'
import { hash } from '../src/world/hash'

test('pages belong to one section each, and all that are given can be taken again', () => {
  const list = new PageList()
  list.grow(100)
  const taken: Pages[] = []
  for (let step = 0; step < 3000; step++) {
    if (hash(step, 0, 1) < 0.5 && taken.length > 0) {
      const [pages] = taken.splice(Math.floor(hash(step, 1, 1) * taken.length), 1)
      list.give(pages!)
    } else {
      const pages = list.take(1 + Math.floor(hash(step, 2, 1) * 9))
      if (pages) taken.push(pages)
      else if (list.total < 300) list.grow(list.total + 50)
    }
    const owned = taken.flatMap(({ first, count }) => Array.from({ length: count }, (_, i) => first + i))
    expect(new Set(owned).size).toBe(owned.length)
    expect(Math.max(-1, ...owned)).toBeLessThan(list.total)
  }
  expect(list.total).toBe(300)
  for (const pages of taken) list.give(pages)
  expect(list.take(300)).toEqual({ first: 0, count: 300 })
  expect(list.take(1)).toBeNull()
})

test('the index of a batch has two triangles of each quad in its ranges, however many', () => {
  const program = new Program('', '')
  const batch = new Batch(new QuadBuffer({} as WebGL2RenderingContext, 1), { program, uniforms: {} }, 0)
  batch.finish()
  expect(batch.mesh.visible).toBe(false)
  const quad = (q: number) => [0, 1, 2, 0, 2, 3].map((corner) => 4 * q + corner)
  const index = () => [...batch.index.values.subarray(0, batch.index.count)]
  for (let again = 0; again < 2; again++) {
    batch.addRange(3, 4)
    batch.addRange(100, 102)
    batch.finish()
    expect(batch.mesh.visible).toBe(true)
    expect(index()).toEqual([3, 100, 101].flatMap(quad))
  }
  for (let q = 0; q < 5000; q += 50) batch.addRange(q, q + 25)
  batch.finish()
  expect(batch.index.count).toBe(100 * 25 * 6)
  expect(index().slice(-6)).toEqual(quad(4974))
  batch.finish()
  expect([batch.index.count, batch.mesh.visible]).toEqual([0, false])
})
