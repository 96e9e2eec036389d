import { expect, test } from 'vitest'
import { PerspectiveCamera } from '../src/gl/camera'
import { inverse, transform } from '../src/gl/matrix'
import { CELL, cellOf } from '../src/mesh/cells'
import { OPEN_CELLS, openingsOf } from '../src/mesh/openings'
import { copyVolume, newVolume } from '../src/mesh/volume'
import { normalized } from '../src/gl/vector'
import { TerrainVisibility, type Openings } from '../src/render/terrain-visibility'
import { chunkKey } from '../src/world/coords'
import { hash } from '../src/world/hash'
import type { World } from '../src/world/world'
import { worldOf } from './columns'
import { landOf } from './land'

const SECTIONS = 2
const STONE = 1
const LEAVES = 7

function openingsIn(world: World): Map<number, Openings> {
  const land = landOf(world)
  const volume = newVolume()
  const chunks = new Map<number, Openings>()
  for (const chunk of land.all()) {
    const openings = chunk.blocks.map((blocks, s) => {
      if (blocks === 0) return OPEN_CELLS
      copyVolume(land, chunk, s, volume)
      return openingsOf(volume)
    })
    chunks.set(chunkKey(chunk.x, chunk.z), { openings })
  }
  return chunks
}

test('the openings of a cell are the faces that its air connects', () => {
  // in the lowest cell, a bent tunnel from −x to +z, and a shaft from above that ends in the rock
  const world = worldOf(1, (x, y, z) =>
    (y === 5 && z === 7 && x <= 3) || (y === 5 && x === 3 && z >= 7) || (x === 9 && z === 2 && y > 8) ? 0 : STONE,
  )
  const openings = openingsIn(world).get(chunkKey(0, 0))!.openings[0]!
  expect([...openings.subarray(0, 6)]).toEqual([0, 0b010010, 0b000100, 0, 0b010010, 0])
})

/** A hilly land with caves, and some trees. */
function rough(x: number, y: number, z: number): number {
  const top = 34 + Math.round(9 * Math.sin(x / 11) + 8 * Math.cos(z / 9))
  if (y > top) return y < top + 6 && hash(x >> 2, z >> 2, 3) > 0.9 ? LEAVES : 0
  const cave = Math.sin(x / 5 + 1) + Math.sin(y / 4) + Math.sin(z / 6)
  return cave > 1.5 ? 0 : STONE
}

test('every block that a line of sight meets is in a cell that can be seen', () => {
  const world = worldOf(SECTIONS, rough)
  const chunks = openingsIn(world)
  const visibility = new TerrainVisibility()
  let hit = 0
  let seen = 0
  const hidden = (x: number, y: number, z: number) => world.get(x, y, z) === STONE
  for (let place = 0; place < 40; place++) {
    const at = (n: number) => hash(place, n, 7)
    const [x, y, z] = [32 * at(0), place % 3 ? 70 * at(1) : 4 + 20 * at(1), 32 * at(2)]
    if (hidden(Math.floor(x), Math.floor(y), Math.floor(z))) continue
    const camera = new PerspectiveCamera(75, 0.05, 1000)
    camera.aspect = 1.6
    camera.place(x, y, z, at(4) * 7, (at(3) - 0.5) * 3)
    const matrix = camera.projectionOfRelative
    visibility.update([x, y, z], matrix, 1, SECTIONS, (cx, cz) => chunks.get(chunkKey(cx, cz)))
    for (const cx of [-1, 0, 1]) {
      for (const cz of [-1, 0, 1]) {
        for (let s = 0; s < SECTIONS; s++) {
          const bits = visibility.seen(cx, s, cz)
          for (let cell = 0; cell < 8; cell++) seen += (bits >> cell) & 1
        }
      }
    }
    const towards = inverse(matrix)
    for (let ray = 0; ray < 150; ray++) {
      const [h, v] = [2 * hash(place, ray, 8) - 1, 2 * hash(place, ray, 9) - 1]
      const [dx, dy, dz] = normalized(transform(towards, h, v, 0.5))
      for (let far = 0; far < 90; far += 0.04) {
        const [bx, by, bz] = [x + dx * far, y + dy * far, z + dz * far].map(Math.floor)
        if (Math.abs(bx! - 16) > 47 || Math.abs(bz! - 16) > 47 || by! < 0 || by! >= SECTIONS * 32) break
        const block = world.get(bx!, by!, bz!)
        if (block === 0) continue
        hit++
        const bits = visibility.seen(bx! >> 5, by! >> 5, bz! >> 5)
        if (!(bits & (1 << cellOf(bx! & 31, by! & 31, bz! & 31))))
          throw new Error(`from ${x}, ${y}, ${z}, block ${bx}, ${by}, ${bz} is missing`)
        if (block === STONE) break
      }
    }
  }
  expect(hit).toBeGreaterThan(2000)
  // and much is hidden: of all cells, in 40 places
  expect(seen).toBeLessThan(0.4 * 40 * 9 * SECTIONS * (32 / CELL) ** 3)
})
