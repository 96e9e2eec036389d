import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { TileLoader } from '../src/horizon/loader'
import { buildMesh } from '../src/horizon/mesh'
import { REACH, chooseShown, distanceTo, isDivided, nameOf, sideOf, tilesAround } from '../src/horizon/quadtree'
import { ShownMask } from '../src/horizon/shown-mask'
import { CELLS, POINTS, decodeTile, type Tile } from '../src/horizon/tile'
import { triangulate } from '../src/horizon/triangulation'
import { WATER } from '../src/world/blocks'

const GOLDEN = new Uint8Array(readFileSync(join(import.meta.dirname, '../../gameserver/horizon/testdata/tile.bin')))
const PALETTE = new Uint8Array(3 * 256).fill(100)

function flatTile(level = 0): Tile {
  return {
    level,
    heights: new Uint16Array(POINTS * POINTS).fill(50),
    blocks: new Uint16Array(POINTS * POINTS).fill(2),
    built: [],
  }
}

describe('surface tiles', () => {
  it('are decoded as the gateway encodes them', () => {
    const { heights, blocks, built } = decodeTile(2, GOLDEN)
    for (let i = 0; i < heights.length; i++) {
      const x = i % POINTS
      const z = Math.floor(i / POINTS)
      expect(heights[i]).toBe(x > 60 ? 48 : 40 + Math.floor(x / 8) + Math.floor((z * z) / 512))
      expect(blocks[i]).toBe(x > 60 ? WATER : 2)
    }
    expect(built).toEqual([
      { x: 3, z: 5, length: 2, height: 110, block: 19 },
      { x: 7, z: 5, length: 1, height: 90, block: 16 },
      { x: 0, z: 200, length: 1, height: 300, block: 1 },
    ])
  })

  it('are refused if they are damaged', () => {
    expect(() => decodeTile(0, GOLDEN)).toThrow(RangeError) // something is built beside a tile of level 0
    for (let n = 0; n < GOLDEN.length; n += 97) expect(() => decodeTile(2, GOLDEN.slice(0, n))).toThrow(RangeError)
    expect(() => decodeTile(2, Uint8Array.of(...GOLDEN, 0))).toThrow(RangeError)
    for (let i = 0; i < 500; i++) {
      const damaged = GOLDEN.slice()
      damaged[(i * 7919) % damaged.length] = (i * 31) & 255
      try {
        decodeTile(2, damaged)
      } catch (reason) {
        expect(reason).toBeInstanceOf(RangeError)
      }
    }
  })
})

describe('the choice of tiles', () => {
  it('covers the land within reach once, the nearest first', () => {
    for (const [px, pz] of [
      [0, 0],
      [-700.5, 1333],
      [511, -1025],
    ] as const) {
      const tiles = tilesAround(px, pz)
      expect(tiles.length).toBeLessThanOrEqual(80) // in one request
      const distances = tiles.map((key) => distanceTo(key, px, pz))
      expect(distances).toEqual([...distances].sort((a, b) => a - b))
      for (let z = pz - REACH + 1; z < pz + REACH; z += 131) {
        for (let x = px - REACH + 1; x < px + REACH; x += 131) {
          if (Math.hypot(x - px, z - pz) >= REACH) continue
          const over = tiles.filter(
            ({ level, x: tx, z: tz }) => tx === Math.floor(x / sideOf(level)) && tz === Math.floor(z / sideOf(level)),
          )
          expect(over.length).toBe(1)
        }
      }
      expect(tiles[0]?.level).toBe(0)
    }
  })

  it('shows what is there without overlaps', () => {
    const tiles = tilesAround(0, 0)
    const all = new Set(tiles.map(nameOf))
    expect(chooseShown(0, 0, (name) => all.has(name))).toEqual(all)
    // a wide tile is shown until all tiles that divide it are there
    const divided = { level: 2, x: 0, z: 0 }
    expect(isDivided(divided, 0, 0)).toBe(true)
    const missing = tiles.find(({ level, x, z }) => level === 0 && x >= 0 && z >= 0 && x < 4 && z < 4)
    if (!missing) throw new Error('no tile')
    const some = new Set(all).add(nameOf(divided))
    some.delete(nameOf(missing))
    const shown = chooseShown(0, 0, (name) => some.has(name))
    expect(shown.has(nameOf(divided))).toBe(true)
    expect(shown.has('0.1.1')).toBe(false)
    expect(chooseShown(0, 0, () => false).size).toBe(0)
  })
})

describe('meshes of tiles', () => {
  it('are two triangles, and edges, of flat land', () => {
    const { index, low, high } = buildMesh(flatTile(), PALETTE)
    expect(index.length / 3).toBe(2 + 4 * 2)
    expect(high).toBe(51)
    expect(low).toBe(41)
  })

  it('differ little from the land, without gaps between triangles', () => {
    const heights = Float32Array.from({ length: POINTS * POINTS }, (_, i) => {
      return 50 + 9 * Math.sin((i % POINTS) / 5) + 7 * Math.cos(Math.floor(i / POINTS) / 7) + (i === 2000 ? 30 : 0)
    })
    const triangles = triangulate(heights, 1)
    expect(triangles.length / 3).toBeLessThan(CELLS * CELLS)
    const used = new Set(triangles)
    expect(used.has(2000)).toBe(true)
    let area = 0
    for (let t = 0; t < triangles.length; t += 3) {
      const [ax, az, bx, bz, cx, cz] = [0, 1, 2].flatMap((i) => {
        const point = triangles[t + i] ?? 0
        return [point % POINTS, Math.floor(point / POINTS)]
      }) as [number, number, number, number, number, number]
      area += Math.abs((bx - ax) * (cz - az) - (cx - ax) * (bz - az)) / 2
      // the middle of the longest side is no point of another triangle, or there would be a gap
      const middle = ((az + bz) / 2) * POINTS + (ax + bx) / 2
      if ((ax + bx) % 2 === 0 && (az + bz) % 2 === 0) expect(used.has(middle)).toBe(false)
    }
    expect(area).toBe(CELLS * CELLS)
  })

  it('have boxes where something is built, as many as are allowed', () => {
    const tile = flatTile(2)
    const flat = buildMesh(tile, PALETTE)
    for (let i = 0; i < 600; i++) tile.built.push({ x: i % 200, z: i, length: 1, height: 60 + i, block: 19 })
    const made = buildMesh(tile, PALETTE)
    expect(made.built).toBe(250)
    expect(made.highest).toBe(659)
    expect((made.index.length - flat.index.length) / 3).toBe(250 * 10)
    expect(made.high).toBe(660)
  })
})

describe('the loader', () => {
  it('asks for hashes, and loads what has changed, some at a time', async () => {
    const keys = tilesAround(0, 0)
    let hash = 'a'
    const urls: string[] = []
    const loaded: string[] = []
    const loader = new TileLoader(
      (key) => loaded.push(nameOf(key)),
      (url) => {
        urls.push(url)
        const tiles = Object.fromEntries(keys.map((key) => [nameOf(key), hash]))
        return Promise.resolve(url.includes('?') ? Response.json({ tiles }) : new Response(new Uint8Array(3)))
      },
    )
    loader.want(keys)
    let now = 0
    const settle = async (turns: number) => {
      for (let i = 0; i < turns; i++) {
        loader.update('http://node/surface', (now += 16))
        await vi.waitFor(() => Promise.resolve())
        await new Promise((done) => setImmediate(done))
      }
    }
    await settle(60)
    expect(loaded.slice().sort()).toEqual(keys.map(nameOf).sort())
    expect(loaded[0]).toBe(nameOf(keys[0]!))
    expect(urls.filter((url) => url.includes('?')).length).toBe(1)
    loaded.length = 0
    hash = 'b'
    now += 5000
    await settle(60)
    expect(loaded.length).toBe(keys.length)
    expect(urls.at(-1)).toMatch(/^http:\/\/node\/surface\/\d\.-?\d+\.-?\d+\/b$/)
  })

  it('waits when the gateway does not answer', async () => {
    let asked = 0
    const loader = new TileLoader(
      () => undefined,
      () => {
        asked++
        return Promise.reject(new Error('away'))
      },
    )
    loader.want(tilesAround(0, 0))
    for (let now = 0; now < 9000; now += 100) {
      loader.update('http://node/surface', now)
      await new Promise((done) => setImmediate(done))
    }
    expect(asked).toBe(1)
  })

  it('asks again when the gateway has been silent for ten seconds', async () => {
    const gone = new AbortController()
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(gone.signal)
    const fetch = vi.fn(
      (_: string, { signal }: { signal: AbortSignal }) =>
        new Promise<Response>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        }),
    )
    vi.stubGlobal('fetch', fetch)
    const loader = new TileLoader(() => undefined)
    loader.want(tilesAround(0, 0))
    loader.update('http://gone/surface', 0)
    loader.update('http://node/surface', 20_000)
    expect(fetch).toHaveBeenCalledTimes(1)
    expect(timeout).toHaveBeenCalledWith(10_000)
    gone.abort()
    await vi.waitFor(() => {
      loader.update('http://node/surface', 20_000)
      expect(fetch).toHaveBeenCalledTimes(2)
    })
    expect(fetch.mock.lastCall![0]).toMatch(/^http:\/\/node\//)
    vi.restoreAllMocks()
    vi.unstubAllGlobals()
  })
})

it('far land fades out where a chunk appears, and is back at once', () => {
  const mask = new ShownMask()
  const value = (x: number, z: number) => mask.values[(z & 63) * 64 + (x & 63)]
  mask.add(-1, 70)
  expect(value(-1, 70)).toBe(0)
  mask.update(0.25)
  expect(value(63, 6)).toBe(128)
  mask.update(1)
  expect(value(-1, 70)).toBe(255)
  mask.remove(-1, 70)
  mask.update(1)
  expect(value(-1, 70)).toBe(0)
})
