import { describe, expect, it } from 'vitest'
import type { FromClient, Welcome } from '../src/net/protocol'
import { Surroundings } from '../src/net/surroundings'

function surroundings(welcome: Partial<Welcome> = { map: true, people: true }) {
  const sent: FromClient[] = []
  const s = new Surroundings((message) => sent.push(message))
  s.begin(welcome as Welcome)
  return { s, types: () => sent.map(({ type }) => type) }
}

describe('surroundings', () => {
  it('asks nothing of a gateway that has no map', () => {
    const { s, types } = surroundings({})
    s.look({ people: true }, 0)
    expect(types()).toEqual([])
  })

  it('asks one question at a time, and repeats one that is not answered', () => {
    const { s, types } = surroundings()
    s.look({ people: false }, 0)
    s.look({ people: false }, 3000)
    expect(types()).toEqual(['nearby'])
    s.look({ people: false }, 9000)
    expect(types().length).toBe(2)
    s.answer({ type: 'nearby', players: [], complete: true }, 9100)
    s.look({ people: false }, 10_000)
    expect(types().length).toBe(2)
    s.look({ people: false }, 11_200)
    expect(types()).toEqual(['nearby', 'nearby', 'nearby'])
  })

  it('asks who plays in the world while that is looked at, less often', () => {
    const { s, types } = surroundings()
    s.look({ people: true }, 0)
    s.answer({ type: 'nearby', players: [], complete: true }, 100)
    s.answer({ type: 'people', names: ['ada'], players: 7 }, 200)
    expect(s.people?.players).toBe(7)
    for (let now = 300; now < 5000; now += 100) {
      s.look({ people: true }, now)
      s.answer({ type: 'nearby', players: [], complete: true }, now)
    }
    expect(types().filter((type) => type === 'people').length).toBe(1)
    s.look({ people: true }, 5200)
    s.answer({ type: 'nearby', players: [], complete: true }, 5300)
    expect(types().filter((type) => type === 'people').length).toBe(2)
  })

  it('does not ask an older gateway who plays in the world', () => {
    const { s, types } = surroundings({ map: true })
    for (let now = 0; now < 9000; now += 100) {
      s.look({ people: true }, now)
      s.answer({ type: 'nearby', players: [], complete: true }, now)
    }
    expect(new Set(types())).toEqual(new Set(['nearby']))
  })
})
