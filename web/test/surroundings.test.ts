import { describe, expect, it } from 'vitest'
import type { FromClient, Welcome } from '../src/net/protocol'
import { Surroundings, TILE_POINTS, tilesAround } from '../src/net/surroundings'

const MAP = { list: false, map: true, x: 10, z: 10, reach: 300 }
const LIST = { list: true, map: false, x: 10, z: 10, reach: 0 }
const POINTS = new Uint8Array(TILE_POINTS * TILE_POINTS * 4).fill(1)

function surroundings(world = 'w', map = true) {
  const sent: FromClient[] = []
  const s = new Surroundings((message) => sent.push(message))
  const begin = (of: string) => s.begin({ world: of, map } as Welcome)
  begin(world)
  return { s, sent, begin }
}

describe('surroundings', () => {
  it('asks nothing of a gateway that has no map', () => {
    const { s, sent } = surroundings('w', false)
    s.look(MAP, 0)
    expect(sent).toEqual([])
  })

  it('asks one question at a time, and repeats one that is not answered', () => {
    const { s, sent } = surroundings()
    s.look(LIST, 0)
    s.look(LIST, 3000)
    expect(sent).toEqual([{ type: 'nearby' }])
    s.look(LIST, 9000)
    expect(sent.length).toBe(2)
    s.answer({ type: 'nearby', players: [], complete: true }, 9100)
    s.look(LIST, 10_000)
    expect(sent.length).toBe(2)
    s.look(LIST, 11_200)
    expect(sent.length).toBe(3)
  })

  it('loads the tiles of a map, the nearest first, and then only those that are old or incomplete', () => {
    const { s, sent } = surroundings()
    s.look(MAP, 0)
    s.answer({ type: 'nearby', players: null, complete: true }, 0)
    for (let i = 1; i < sent.length && i < 99; i++) {
      const asked = sent[i]
      if (asked?.type !== 'map') throw new Error('no tile was asked for')
      const complete = asked.x !== 0 || asked.z !== 0
      s.answer({ type: 'map', x: asked.x, z: asked.z, points: POINTS, complete }, 0)
    }
    const tiles = sent.slice(1).map((m) => (m.type === 'map' ? [m.x, m.z] : []))
    expect(tiles).toEqual(tilesAround(MAP))
    expect(tiles[0]).toEqual([0, 0])
    expect(tiles.length).toBe(16)
    expect(s.tiles.size).toBe(16)
    sent.length = 0
    s.look(MAP, 5000)
    s.answer({ type: 'nearby', players: [], complete: true }, 5000)
    expect(sent).toEqual([{ type: 'nearby' }, { type: 'map', x: 0, z: 0 }])
  })

  it('keeps the picture of a tile that a busy gateway does not draw', () => {
    const { s } = surroundings()
    s.answer({ type: 'map', x: 1, z: 2, points: POINTS, complete: true }, 0)
    s.answer({ type: 'map', x: 1, z: 2, points: '', complete: false }, 10)
    expect(s.tiles.get('1,2')).toMatchObject({ complete: false, at: 10 })
    expect(s.tiles.get('1,2')?.points[0]).toBe(257)
  })

  it('keeps the map in the same world, and drops it in another one', () => {
    const { s, begin } = surroundings()
    s.answer({ type: 'map', x: 1, z: 2, points: POINTS, complete: true }, 0)
    begin('w')
    expect(s.tiles.size).toBe(1)
    begin('other')
    expect(s.tiles.size).toBe(0)
  })
})
