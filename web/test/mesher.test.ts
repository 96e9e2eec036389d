import { describe, expect, test } from 'vitest'
import { CELL } from '../src/mesh/cells'
import { WORDS_PER_QUAD, meshSection, type SectionMesh } from '../src/mesh/mesher'
import { copyVolume, newVolume } from '../src/mesh/volume'
import { TILES } from '../src/world/block-table'
import { KINDS, WATER } from '../src/world/blocks'
import { World } from '../src/world/world'
import { worldOf } from './columns'
import { landOf, meshOf } from './land'

const STONE = 1
const GRASS = 2
const LEAVES = 7
const GLASS = 18
const LAMP = 20
const BIRCH_LEAVES = 25
const POPPY = 32
const REEDS = 37

interface Vertex {
  at: Vector
  face: number
  corner: number
  occlusion: number
  low: number
  wet: number
  layer: number
  sky: number
  glow: number
}

type Vector = [x: number, y: number, z: number]
type Quad = [Vertex, Vertex, Vertex, Vertex]

function vertexOf([a = 0, b = 0]: Uint32Array): Vertex {
  return {
    at: [a & 63, (a >> 6) & 63, (a >> 12) & 63],
    face: (a >> 18) & 7,
    corner: (a >> 21) & 3,
    occlusion: (a >> 23) & 3,
    low: (a >> 25) & 1,
    wet: (a >> 26) & 1,
    layer: b & 255,
    sky: (b >> 10) & 63,
    glow: (b >> 16) & 63,
  }
}

function quadsOf(words: Uint32Array): Quad[] {
  const quads: Quad[] = []
  for (let q = 0; q < words.length; q += WORDS_PER_QUAD) {
    const vertex = (i: number) => vertexOf(words.subarray(q + 2 * i, q + 2 * i + 2))
    quads.push([vertex(0), vertex(1), vertex(2), vertex(3)])
  }
  return quads
}

function mesh(world: World, section = 0): SectionMesh {
  const land = landOf(world)
  return meshOf(land, land.chunk(0, 0)!, section)
}

/** Returns the light of a block: sky light in the high four bits, block light in the low four. */
function lightIn(world: World): (x: number, y: number, z: number) => number {
  const land = landOf(world)
  return (x, y, z) => {
    const { chunk, index } = land.locate(x, y, z)!
    return chunk.lightAt(index)
  }
}

const OUTWARD: Vector[] = [
  [1, 0, 0],
  [-1, 0, 0],
  [0, 1, 0],
  [0, -1, 0],
  [0, 0, 1],
  [0, 0, -1],
]

function minus(a: Vector, b: Vector): Vector {
  return [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

function cross(a: Vector, b: Vector): Vector {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/** Returns the number of block faces that a quad covers. */
function area(quad: Quad): number {
  return Math.hypot(...cross(minus(quad[1].at, quad[0].at), minus(quad[3].at, quad[0].at)))
}

function at(x: number, y: number, z: number, block: number) {
  return (bx: number, by: number, bz: number) => (bx === x && by === y && bz === z ? block : 0)
}

describe('mesher', () => {
  test('a block in the air has six faces, each once', () => {
    const { opaque, cutout, water } = mesh(worldOf(1, at(5, 6, 7, STONE)))
    const quads = quadsOf(opaque)
    expect(quads.map((quad) => quad[0].face).sort()).toEqual([0, 1, 2, 3, 4, 5])
    expect(cutout.length + water.length).toBe(0)
    for (const { at } of quads.flat()) {
      at.forEach((v, axis) =>
        expect(
          [
            [5, 6],
            [6, 7],
            [7, 8],
          ][axis],
        ).toContain(v),
      )
    }
  })

  test('faces under water are marked', () => {
    // a block on the floor of water, with one above the water
    const { opaque, water } = mesh(
      worldOf(1, (x, y, z) => (x === 5 && z === 7 && y <= 4 ? STONE : y === 0 ? STONE : y <= 2 ? WATER : 0)),
    )
    const wet = (y: number) =>
      quadsOf(opaque)
        .filter(([{ face, at }]) => face === 0 && at[1] === y && at[0] === 6)
        .map(([{ wet }]) => wet)
    expect([wet(1), wet(2), wet(3)].map(([bit]) => bit)).toEqual([1, 1, 0])
    expect(quadsOf(opaque).filter(([{ face, at, wet }]) => face === 2 && at[1] === 1 && !wet)).toEqual([])
    expect(quadsOf(water).every(([{ wet }]) => wet === 1)).toBe(true)
  })

  test('slabs, panes and plants under water are marked, those above it are not', () => {
    const wet = (block: number, level: number) => {
      const stack = [STONE, block, block === REEDS ? block : level > 1 ? WATER : 0]
      const parts = mesh(
        worldOf(1, (x, y, z) => (x === 5 && z === 7 && stack[y]) || (y === 0 ? STONE : y <= level ? WATER : 0)),
      )
      const quads = [parts.opaque, parts.cutout].flatMap(quadsOf)
      return quads.filter(([{ layer, face }]) => layer === KINDS[block]?.side && face !== 3).map(([{ wet }]) => wet)
    }
    const named = (wanted: string) => KINDS.findIndex(({ name }) => name === wanted)
    const slab = named('Cobble slab')
    expect(wet(slab, 4)).toEqual([1, 1, 1, 1, 1])
    expect(wet(slab, 0)).toEqual([0, 0, 0, 0, 0])
    expect(new Set(wet(named('Glass pane'), 4))).toEqual(new Set([1]))
    expect(wet(REEDS, 4)).toEqual([1, 1, 1, 1])
    expect(wet(REEDS, 1)).toEqual([0, 0, 0, 0])
  })

  test('every triangle faces outwards', () => {
    // a rough surface, so that all corner shadings and both cuts occur
    const rough = worldOf(1, (x, y, z) => (y <= 8 + ((((x * 7 + z * 13) % 5) + 5) % 5) ? STONE : 0))
    const quads = quadsOf(mesh(rough).opaque)
    expect(quads.length).toBeGreaterThan(500)
    for (const [a, b, c, d] of quads) {
      for (const [p, q, r] of [
        [a, b, c],
        [a, c, d],
      ] as const) {
        const normal = cross(minus(q.at, p.at), minus(r.at, p.at))
        expect(normal.map((v) => Math.sign(v) + 0)).toEqual(OUTWARD[p.face])
      }
    }
  })

  test('a plain merges into one rectangle for each cell', () => {
    const quads = quadsOf(mesh(worldOf(1, (_x, y) => (y < 10 ? STONE : 0))).opaque)
    expect(quads.map(area)).toEqual(Array(4).fill(CELL * CELL)) // the sides are hidden by neighbours, the floor is the world's
    expect(quads.flat().every(({ face, at }) => face === 2 && at[1] === 10)).toBe(true)
  })

  test('merging covers exactly the faces that show', () => {
    const solid = (x: number, y: number, z: number) => (y < 6 + (((x >> 2) ^ (z >> 1)) & 3) ? STONE : 0)
    const world = worldOf(1, solid)
    let faces = 0
    for (let y = 0; y < 32; y++) {
      for (let z = 0; z < 32; z++) {
        for (let x = 0; x < 32; x++) {
          if (!solid(x, y, z)) continue
          for (const [dx, dy, dz] of OUTWARD) if (y + dy >= 0 && !solid(x + dx, y + dy, z + dz)) faces++
        }
      }
    }
    const covered = quadsOf(mesh(world).opaque).reduce((sum, quad) => sum + area(quad), 0)
    expect(covered).toBe(faces)
  })

  test('faces over the border of the chunk are hidden by the neighbour', () => {
    const { opaque } = mesh(worldOf(1, (x, y, z) => (y === 4 && z === 3 && (x === 31 || x === 32) ? STONE : 0)))
    expect(
      quadsOf(opaque)
        .map((quad) => quad[0].face)
        .sort(),
    ).toEqual([1, 2, 3, 4, 5])
  })

  test('no walls at the edge of what is loaded', () => {
    const world = worldOf(1, (_x, y) => (y < 10 ? STONE : 0))
    world.remove(1, 0)
    expect(quadsOf(mesh(world).opaque).every((quad) => quad[0].face === 2)).toBe(true)
  })

  test('corners beside a block are darker: 3 free, 2 by one neighbour, 0 in a nook', () => {
    // ground at y = 3; a wall along x = 10 for z ≤ 10 and one along z = 11 for x ≥ 11: they meet at (11, 11)
    const world = worldOf(1, (x, y, z) => {
      if (y <= 3) return STONE
      return y === 4 && ((x === 10 && z <= 10) || (z === 11 && x >= 11)) ? STONE : 0
    })
    const ground = quadsOf(mesh(world).opaque).filter((quad) => quad[0].face === 2 && quad[0].at[1] === 4)
    const occlusionAt = (x: number, z: number, cellX: number, cellZ: number) => {
      const quad = ground.find((q) => {
        const xs = q.map((v) => v.at[0])
        const zs = q.map((v) => v.at[2])
        return (
          Math.min(...xs) <= cellX && Math.max(...xs) > cellX && Math.min(...zs) <= cellZ && Math.max(...zs) > cellZ
        )
      })!
      return quad.find((v) => v.at[0] === x && v.at[2] === z)?.occlusion
    }
    expect(occlusionAt(12, 5, 11, 5)).toBe(3) // away from the wall
    expect(occlusionAt(11, 5, 11, 5)).toBe(1) // along the wall: beside and diagonal
    expect(occlusionAt(11, 11, 11, 10)).toBe(0) // in the nook between the walls
  })

  test('grass has its own top and sides', () => {
    const layers = new Map(quadsOf(mesh(worldOf(1, at(5, 6, 7, GRASS))).opaque).map((q) => [q[0].face, q[0].layer]))
    expect(layers.get(2)).toBe(TILES.indexOf('grass_top'))
    expect(layers.get(3)).toBe(TILES.indexOf('dirt'))
    expect(layers.get(0)).toBe(TILES.indexOf('grass_side'))
  })

  test('water lies a little lower, in its own pass, without inner faces', () => {
    const { opaque, water } = mesh(worldOf(1, (_x, y) => (y < 4 ? STONE : y < 8 ? WATER : 0)))
    const surface = quadsOf(water)
    expect(surface).toHaveLength(4)
    expect(surface.flat().every((v) => v.low === 1 && v.at[1] === 8)).toBe(true)
    expect(quadsOf(opaque)).toHaveLength(4) // the ground shows through
  })

  test('glass hides nothing behind it, and glass beside glass has no face between', () => {
    const { opaque, cutout } = mesh(
      worldOf(1, (x, y, z) => (y === 4 && z === 3 ? (x === 9 ? STONE : x === 10 || x === 11 ? GLASS : 0) : 0)),
    )
    expect(quadsOf(opaque)).toHaveLength(6)
    expect(quadsOf(cutout).reduce((sum, quad) => sum + area(quad), 0)).toBe(9) // ten outer faces, one against the stone
  })

  test('leaves draw the face between two of them once', () => {
    const { cutout, thicket } = mesh(
      worldOf(1, (x, y, z) => (y === 4 && z === 3 && (x === 9 || x === 10) ? LEAVES : 0)),
    )
    expect(quadsOf(cutout).reduce((sum, quad) => sum + area(quad), 0)).toBe(10)
    expect(quadsOf(thicket)).toHaveLength(1) // separate, because it is drawn only nearby
  })

  describe('far away', () => {
    const far = (world: World) => {
      const land = landOf(world)
      const volume = newVolume()
      copyVolume(land, land.chunk(0, 0)!, 0, volume)
      return meshSection(volume, 0, false)
    }

    test('leaves are cubes of two blocks, if three of these are leaves, without a thicket', () => {
      const { cutout, thicket } = far(worldOf(1, (x, y, z) => (y === 4 && z < 2 && x + z < 5 ? LEAVES : 0)))
      // at z = 0 five leaves, at z = 1 four: two full cubes, and one with a single leaf
      expect(quadsOf(cutout).reduce((sum, quad) => sum + area(quad), 0)).toBe(4 * 10)
      expect(thicket).toHaveLength(0)
    })

    test('where a cube of leaves meets rock, the rock shows', () => {
      const { opaque, cutout } = far(
        worldOf(1, (x, y, z) => (x < 8 || x > 11 || y < 8 || y > 9 || z < 8 || z > 9 ? 0 : x < 9 ? STONE : LEAVES)),
      )
      expect(quadsOf(opaque).reduce((sum, quad) => sum + area(quad), 0)).toBe(16) // leaves hide none
      const planes = quadsOf(cutout).filter((quad) => quad.every(({ at }) => at[0] === 8))
      expect(planes).toHaveLength(0)
    })

    test('a trunk does not show through the leaves around it', () => {
      const { opaque, cutout } = far(
        worldOf(1, (x, y, z) => (x < 8 || x > 9 || y < 8 || y > 9 || z < 8 || z > 9 ? 0 : x + z < 17 ? STONE : LEAVES)),
      )
      expect(quadsOf(opaque).reduce((sum, quad) => sum + area(quad), 0)).toBe(4) // the sides inside
      expect(quadsOf(cutout)).toHaveLength(6)
    })

    test('no face is shaded towards a corner', () => {
      const { opaque } = far(worldOf(1, (x, y, z) => (y < 4 || (y === 4 && x > 9 && z > 9) ? STONE : 0)))
      for (const quad of quadsOf(opaque)) {
        expect(new Set(quad.map(({ sky }) => sky)).size).toBe(1)
        expect(new Set(quad.map(({ occlusion }) => occlusion)).size).toBe(1)
      }
    })

    test('a quarter of the plants is left', () => {
      const { cutout } = far(worldOf(1, (_x, y) => (y < 4 ? STONE : y === 4 ? POPPY : 0)))
      const plants = quadsOf(cutout).length / 2
      expect(plants).toBeGreaterThan(200)
      expect(plants).toBeLessThan(312)
    })
  })

  test('leaves of different kinds do so in either order', () => {
    for (const [a, b] of [
      [LEAVES, BIRCH_LEAVES],
      [BIRCH_LEAVES, LEAVES],
    ] as const) {
      const { cutout, thicket } = mesh(
        worldOf(1, (x, y, z) => (y === 4 && z === 3 ? (x === 9 ? a : x === 10 ? b : 0) : 0)),
      )
      expect(quadsOf(cutout).reduce((sum, quad) => sum + area(quad), 0)).toBe(10)
      expect(quadsOf(thicket)).toHaveLength(1)
    }
  })

  test('a plant is two crossed quads in the cutout pass, lit by the light of its block', () => {
    const { opaque, cutout } = mesh(
      worldOf(1, (x, y, z) => (y < 4 ? STONE : y === 4 && x === 9 && z === 3 ? POPPY : 0)),
    )
    expect(quadsOf(opaque)).toHaveLength(4) // the ground shows whole
    const quads = quadsOf(cutout)
    expect(quads.map((quad) => quad.map(({ at }) => at))).toEqual([
      [
        [9, 4, 3],
        [10, 4, 4],
        [10, 5, 4],
        [9, 5, 3],
      ],
      [
        [9, 4, 4],
        [10, 4, 3],
        [10, 5, 3],
        [9, 5, 4],
      ],
    ])
    expect(quads.map((quad) => quad[0].face)).toEqual([6, 7])
    for (const vertex of quads.flat()) {
      expect(vertex).toMatchObject({ layer: TILES.indexOf('poppy'), sky: 60, glow: 0, low: vertex.corner >= 2 ? 1 : 0 })
    }
  })

  test('the wind moves all of a stacked plant, also across the border of sections', () => {
    const world = worldOf(2, (x, y, z) =>
      x === 9 && z === 3 && y >= 31 && y <= 32 ? REEDS : x === 9 && z === 3 && y < 31 ? STONE : 0,
    )
    const low = (section: number) => quadsOf(mesh(world, section).cutout)[0]!.map((vertex) => vertex.low)
    expect(low(0)).toEqual([0, 0, 1, 1])
    expect(low(1)).toEqual([1, 1, 1, 1])
  })

  test('a plant stops no light', () => {
    const light = lightIn(worldOf(1, (_x, y) => (y < 4 ? STONE : y < 7 ? REEDS : 0)))
    expect(light(0, 4, 0) >> 4).toBe(15)
  })

  test('faces without light merge, whatever their occlusion', () => {
    // a closed cave with a step in its floor
    const cave = worldOf(1, (x, y, z) =>
      x > 1 && x < 13 && z > 1 && z < 13 && y > (x > 7 ? 6 : 5) && y < 12 ? 0 : STONE,
    )
    const floor = quadsOf(mesh(cave).opaque).filter(([{ face, at }]) => face === 2 && at[1] < 12)
    expect(floor).toHaveLength(2)
    expect(floor.every((quad) => quad.every(({ sky, glow }) => sky + glow === 0))).toBe(true)
  })
})

describe('light', () => {
  test('falls from the sky, and fades by one a step under a roof', () => {
    const light = lightIn(worldOf(1, (x, y) => (y < 4 || (y === 8 && x >= 4) ? STONE : 0)))
    const sky = (x: number) => light(x, 5, 9) >> 4
    expect([2, 3, 4, 5, 6, 10, 17, 18, 19, 30].map(sky)).toEqual([15, 15, 14, 13, 12, 8, 1, 0, 0, 0])
    expect(light(9, 2, 9)).toBe(0) // in the rock
  })

  test('a lamp in a cave glows around corners, in city-block distance', () => {
    const world = worldOf(1, (x, y, z) =>
      y === 10 && z === 9 && x >= 5 && x < 25 ? 0 : y === 10 && x === 24 && z > 9 ? 0 : STONE,
    )
    world.set(6, 10, 9, LAMP)
    const light = lightIn(world)
    const glow = (x: number, z: number) => light(x, 10, z) & 15
    expect([7, 10, 20, 21].map((x) => glow(x, 9))).toEqual([14, 11, 1, 0])
    expect(light(10, 10, 9) >> 4).toBe(0)
  })

  test('water dims the light from above', () => {
    const light = lightIn(worldOf(1, (_x, y) => (y < 4 ? STONE : y < 14 ? WATER : 0)))
    expect([14, 13, 12, 8].map((y) => light(3, y, 3) >> 4)).toEqual([15, 14, 13, 9])
  })
})
