import { describe, expect, it, vi } from 'vitest'
import { sideOf } from '../src/horizon/quadtree'
import { POINTS } from '../src/horizon/tile'
import { Bookmarks, MAX_BOOKMARKS, MAX_NAME } from '../src/map/bookmarks'
import { MAX_SPAN, MAX_TILES, MIN_SPAN, MapView, across, down, pointOf, tilesIn } from '../src/map/frame'
import { Hosts, sectorsIn } from '../src/map/hosts'
import { roundDown } from '../src/map/marks'
import { lightOf } from '../src/map/shading'

function view(width = 900, height = 600): MapView {
  const it = new MapView(100, -50)
  it.resize({ width, height })
  return it
}

describe('the view of the map', () => {
  it('has its middle in the middle, and north above', () => {
    const it = view()
    it.setScale(2)
    expect([across(it.frame, 100), down(it.frame, -50)]).toEqual([450, 300])
    expect([across(it.frame, 110), down(it.frame, -60)]).toEqual([470, 280])
    expect(it.at({ x: 470, y: 280 })).toEqual({ x: 110, z: -60 })
  })

  it('keeps the block under the pointer while it zooms', () => {
    const it = view()
    const before = it.at({ x: 700, y: 100 })
    it.zoom(3.7, { x: 700, y: 100 })
    expect(it.at({ x: 700, y: 100 }).x).toBeCloseTo(before.x, 6)
    expect(it.at({ x: 700, y: 100 }).z).toBeCloseTo(before.z, 6)
  })

  it('follows the pointer while it is dragged', () => {
    const it = view()
    it.setScale(4)
    it.pan(40, -20)
    expect([it.x, it.z]).toEqual([90, -45])
  })

  it('keeps its scale when the size of the canvas gets known', () => {
    const it = new MapView()
    it.setScale(1.5)
    it.resize({ width: 900, height: 600 })
    expect(it.scale).toBe(1.5)
  })

  it('shows two chunks at least, and several kilometres at most', () => {
    const it = view()
    it.zoom(1e9)
    expect(600 / it.scale).toBeCloseTo(MIN_SPAN)
    it.zoom(1e-9)
    expect(900 / it.scale).toBeCloseTo(MAX_SPAN)
  })
})

describe('the tiles of the map', () => {
  it('cover the frame once, at every scale, and are not too many', () => {
    for (const [width, height] of [
      [900, 600],
      [390, 500],
      [2560, 1440],
      [640, 360],
    ] as const) {
      for (let scale = 10; scale > 0.05; scale *= 0.7) {
        const it = view(width, height)
        it.setScale(scale)
        const { frame } = it
        const tiles = tilesIn(frame)
        expect(tiles.length).toBeLessThanOrEqual(MAX_TILES)
        for (let y = 1; y < height; y += height / 7) {
          for (let x = 1; x < width; x += width / 7) {
            const at = it.at({ x, y })
            const over = tiles.filter(
              (key) => key.x === Math.floor(at.x / sideOf(key.level)) && key.z === Math.floor(at.z / sideOf(key.level)),
            )
            expect(over.length).toBe(1)
          }
        }
        expect(new Set(tiles.map(({ level }) => level)).size).toBe(1)
      }
    }
  })

  it('are the finest near, and wider ones for more land, those in the middle first', () => {
    const it = view()
    it.setScale(1)
    expect(tilesIn(it.frame)[0]).toEqual({ level: 0, x: 0, z: -1 })
    it.zoom(1e-9)
    const far = tilesIn(it.frame)
    expect(far[0]?.level).toBe(2)
    expect([far[0]?.x, far[0]?.z]).toEqual([0, -1])
  })

  it('have the points of blocks', () => {
    expect(pointOf({ level: 0, x: -1, z: 2 }, -256, 512)).toBe(0)
    expect(pointOf({ level: 0, x: -1, z: 2 }, -249, 516)).toBe(POINTS + 1)
    expect(pointOf({ level: 2, x: 0, z: 0 }, 1023, 1023)).toBe(63 * POINTS + 63)
  })

  it('are lit from the north-west', () => {
    expect(lightOf(32, 0, 0)).toBe(1)
    expect(lightOf(32, 1, 1)).toBeGreaterThan(1)
    expect(lightOf(32, -1, -1)).toBeLessThan(1)
    expect(lightOf(32, -99, -99)).toBeGreaterThan(0.5)
  })
})

describe('the hosts', () => {
  it('are asked for the sectors in the frame, and again after a while', async () => {
    const it = view()
    const urls: string[] = []
    let node = 'a'
    const hosts = new Hosts(vi.fn(), (url) => {
      urls.push(url)
      const here = [{ x: 0, z: -512, width: 512, depth: 512, ...(node ? { node } : { lost: true }) }]
      return Promise.resolve(Response.json({ sectors: { '0.-1': here } }))
    })
    const look = async (now: number) => {
      hosts.update('base', it.frame, now)
      await vi.waitFor(() => expect(hosts.legend(it.frame)).toEqual([{ node, regions: 1 }]))
    }
    await look(0)
    hosts.update('base', it.frame, 1000)
    expect(urls).toEqual([`base/hosts?sectors=${sectorsIn(it.frame).join()}`])
    const colour = hosts.colourOf('a')
    node = 'b'
    await look(4000)
    expect(hosts.colourOf('b')).not.toBe(colour)
    expect(hosts.colourOf('a')).toBe(colour)
    node = ''
    await look(8000)
    it.moveTo(5000, 5000)
    expect(hosts.legend(it.frame)).toEqual([])
  })

  it('are not asked for more sectors than the gateway answers', () => {
    const it = view(2000, 2000)
    it.zoom(1e-9)
    expect(sectorsIn(it.frame).length).toBeGreaterThan(9)
    expect(sectorsIn(it.frame).length).toBeLessThanOrEqual(36)
  })
})

describe('bookmarks', () => {
  function storage() {
    const items = new Map<string, string>()
    return {
      getItem: (key: string) => items.get(key) ?? null,
      setItem: (key: string, value: string) => void items.set(key, value),
    }
  }

  it('are kept, apart for each world', () => {
    const kept = storage()
    const own = new Bookmarks(kept, 'a')
    expect(own.add({ name: ' harbour ', x: 1, y: 2, z: -3 })).toBe(true)
    own.add({ name: 'x'.repeat(99), x: 4, y: 5, z: 6 })
    expect(new Bookmarks(kept, 'b').all).toEqual([])
    const again = new Bookmarks(kept, 'a')
    expect(again.all).toEqual([
      { name: 'x'.repeat(MAX_NAME), x: 4, y: 5, z: 6 },
      { name: 'harbour', x: 1, y: 2, z: -3 },
    ])
    again.remove(again.all[0]!)
    expect(new Bookmarks(kept, 'a').all.map(({ name }) => name)).toEqual(['harbour'])
  })

  it('are bounded, and what is no bookmark is dropped', () => {
    const kept = storage()
    const own = new Bookmarks(kept, 'a')
    for (let i = 0; i < MAX_BOOKMARKS; i++) expect(own.add({ name: 'a', x: i, y: 0, z: 0 })).toBe(true)
    expect(own.add({ name: 'a', x: 0, y: 0, z: 0 })).toBe(false)
    for (const stored of ['{', '3', '[3, null, {"name":"a"}, {"name":7,"x":1,"y":1,"z":1}]']) {
      kept.setItem('voxeld.bookmarks.a', stored)
      expect(new Bookmarks(kept, 'a').all).toEqual([])
    }
  })
})

it('the length of the scale is a round number', () => {
  expect([0.4, 1, 3, 7, 19, 20, 999, 1000, 2600].map(roundDown)).toEqual([1, 1, 2, 5, 10, 20, 500, 1000, 2000])
})
