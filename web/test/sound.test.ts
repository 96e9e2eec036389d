import { describe, expect, test, vi } from 'vitest'
import { particlesAt } from '../src/render/particles'
import { ambienceAt } from '../src/sound/ambience'
import { REACH, hear } from '../src/sound/hearing'
import { Doors } from '../src/sound/doors'
import { materialOf, soundOfChange } from '../src/sound/kinds'
import { Mixer } from '../src/sound/mixer'
import { Steps } from '../src/sound/steps'
import { MAX_VOICES, Voices } from '../src/sound/voices'
import { AIR, KINDS, WATER } from '../src/world/blocks'

const STONE = 1
const GRASS = 2
const named = (name: string) => KINDS.findIndex((kind) => kind.name === name)

describe('hearing', () => {
  const ear = { x: 10, y: 20, z: -4, yaw: 0 } // looks towards +z: −x is on the right
  const at = (dx: number, dy: number, dz: number, yaw = 0) =>
    hear({ ...ear, yaw }, { x: ear.x + dx, y: ear.y + dy, z: ear.z + dz })

  test('what is nearer is louder, and what is out of reach is not heard', () => {
    const gains = [0, 3, 6, 12, 24, REACH - 1, REACH].map((distance) => at(0, 0, distance).gain)
    expect(gains[0]).toBe(1)
    expect(gains[1]).toBe(1)
    for (let i = 2; i < gains.length; i++) expect(gains[i]).toBeLessThan(gains[i - 1]!)
    expect(gains.at(-1)).toBe(0)
    expect(at(0, REACH, 0).gain).toBe(0)
  })

  test('it is heard on the side where it is', () => {
    expect(at(-8, 0, 0).pan).toBeGreaterThan(0.8)
    expect(at(8, 0, 0).pan).toBeLessThan(-0.8)
    expect(at(8, 0, 0, Math.PI).pan).toBeGreaterThan(0.8) // turned around
    expect(Math.abs(at(0, 0, 8).pan)).toBeLessThan(1e-9)
    expect(at(0, -1.6, 0).pan).toBeCloseTo(0) // the own feet
    expect(Math.abs(at(-0.2, 0, 0).pan)).toBeLessThan(0.2)
  })
})

describe('voices', () => {
  test('are bounded: a louder sound replaces the quietest', () => {
    const voices = new Voices()
    const stops = Array.from({ length: MAX_VOICES }, () => vi.fn())
    stops.forEach((stop, i) => {
      expect(voices.makeRoom(0.1, 0)).toBe(true)
      voices.add({ gain: 0.2 + 0.01 * i, end: 1, stop })
    })
    expect(voices.makeRoom(0.2, 0.5)).toBe(false)
    expect(voices.makeRoom(0.25, 0.5)).toBe(true)
    expect(stops.map((stop) => stop.mock.calls.length)).toEqual([1, ...Array<number>(MAX_VOICES - 1).fill(0)])
  })

  test('end by themselves', () => {
    const voices = new Voices()
    for (let i = 0; i < MAX_VOICES; i++) voices.add({ gain: 1, end: i < 1 ? 1 : 2, stop: vi.fn() })
    expect(voices.makeRoom(0.1, 0.9)).toBe(false)
    expect(voices.makeRoom(0.1, 1)).toBe(true)
  })
})

describe('what blocks sound like', () => {
  test.each([
    ['Stone', 'stone'],
    ['Coal ore', 'stone'],
    ['Cobble stairs', 'stone'],
    ['Sandstone', 'stone'],
    ['Grass', 'soft'],
    ['Red wool', 'soft'],
    ['Sand', 'soft'],
    ['Tall grass', 'leaves'],
    ['Poppy', 'leaves'],
    ['Pine leaves', 'leaves'],
    ['Birch log', 'wood'],
    ['Plank slab', 'wood'],
    ['Pine door', 'wood'],
    ['Glass pane', 'glass'],
    ['Ice', 'glass'],
    ['Gold block', 'metal'],
    ['Gold ore', 'stone'],
    ['Water', 'water'],
  ])('%s is %s', (name, material) => {
    expect(named(name)).toBeGreaterThan(0)
    expect(materialOf(named(name))).toBe(material)
  })

  test('breaking sounds like what was there, placing like what is there, a door is used', () => {
    expect(soundOfChange(GRASS, AIR)).toEqual(['break', 'soft'])
    expect(soundOfChange(GRASS, WATER)).toEqual(['break', 'soft'])
    expect(soundOfChange(AIR, STONE)).toEqual(['place', 'stone'])
    const door = named('Door')
    expect(soundOfChange(door, door + 4)).toEqual(['use', 'wood'])
  })
})

test('the halves of a door make one sound, each time that it is used', () => {
  const door = named('Door')
  const doors = new Doors()
  const use = (y: number, now: number, x = 0) => doors.sounded(x, y, 0, door, door + 4, now)
  expect([use(5, 0), use(6, 10)]).toEqual([false, true])
  expect([use(6, 100), use(5, 110)]).toEqual([false, true]) // used again at once
  expect([use(5, 1000), use(5, 1010, 1)]).toEqual([false, false]) // another door beside it
  expect([use(5, 2000), use(6, 3000)]).toEqual([false, false])
  expect([doors.sounded(0, 5, 0, AIR, STONE, 4000), doors.sounded(0, 6, 0, AIR, STONE, 4000)]).toEqual([false, false])
})

describe('steps', () => {
  test('one for each so many blocks on the ground', () => {
    const steps = new Steps()
    let count = 0
    for (let i = 0; i <= 42; i++) if (steps.move(i / 2, 30, 0, true)) count++
    expect(count).toBe(8) // each after 2.5 blocks
  })

  test('one where somebody lands, none in the air', () => {
    const steps = new Steps()
    for (let y = 50; y > 30; y--) expect(steps.move(0, y, 0, false)).toBe(false)
    expect(steps.move(0, 30, 0, true)).toBe(true)
    expect(steps.move(0, 30, 0, true)).toBe(false)
  })

  test('who stands makes none', () => {
    const steps = new Steps()
    for (let i = 0; i < 50; i++) expect(steps.move(7, 30, 7, true)).toBe(false)
  })
})

describe('ambience', () => {
  const blocks = (get: (x: number, y: number, z: number) => number) => ({ height: 128, get })

  test('wind grows with the height, under the open sky', () => {
    const plain = blocks((_, y) => (y < 30 ? STONE : AIR))
    const [low, high] = [ambienceAt(plain, 0, 31.6, 0), ambienceAt(plain, 0, 100, 0)]
    expect(low.wind).toBeGreaterThan(0)
    expect(high.wind).toBeGreaterThan(3 * low.wind)
    expect([low.water, low.cave]).toEqual([0, 0])
  })

  test('a cave hums, and a house does not', () => {
    const cave = blocks((_, y) => (y >= 10 && y < 14 ? AIR : y < 40 ? STONE : AIR))
    expect(ambienceAt(cave, 0, 11.6, 0)).toEqual({ water: 0, wind: 0, cave: 1, rain: 0 })
    const house = blocks((_, y) => (y < 30 || y === 34 ? STONE : AIR))
    expect(ambienceAt(house, 0, 31.6, 0)).toEqual({ water: 0, wind: 0, cave: 0, rain: 0 })
  })

  test('rain is loud in the open, quiet in a house, and not heard in a cave', () => {
    const plain = blocks((_, y) => (y < 30 ? STONE : AIR))
    expect(ambienceAt(plain, 0, 31.6, 0).rain).toBe(0)
    expect(ambienceAt(plain, 0, 31.6, 0, 0.5).rain).toBe(0.5)
    const house = blocks((_, y) => (y < 30 || y === 34 ? STONE : AIR))
    expect(ambienceAt(house, 0, 31.6, 0, 1).rain).toBe(0.25)
    const cave = blocks((_, y) => (y >= 10 && y < 14 ? AIR : y < 40 ? STONE : AIR))
    expect(ambienceAt(cave, 0, 11.6, 0, 1).rain).toBe(0)
  })

  test('water is louder the more there is around', () => {
    const shore = (edge: number) =>
      ambienceAt(
        blocks((x, y) => (y > 30 ? AIR : x > edge ? WATER : STONE)),
        0.5,
        31.6,
        0,
      )
    expect(shore(20).water).toBe(0)
    expect(shore(5).water).toBeGreaterThan(0)
    expect(shore(0).water).toBeGreaterThan(shore(5).water)
    expect(shore(-30).water).toBe(1)
  })
})

test('blocks that break far away have fewer particles, and then none', () => {
  expect(particlesAt(0)).toBe(22)
  expect(particlesAt(30)).toBeLessThan(particlesAt(10))
  expect([particlesAt(39) > 0, particlesAt(41)]).toEqual([true, 0])
})

describe('the output', () => {
  test('is tried once where there is none, and a hidden page plays nothing', () => {
    const opened = vi.fn(() => {
      throw new Error('no output')
    })
    const page = { hidden: false, addEventListener: () => undefined }
    vi.stubGlobal('window', { addEventListener: () => undefined })
    vi.stubGlobal('document', page)
    vi.stubGlobal('AudioContext', opened)
    try {
      const mixer = new Mixer()
      mixer.setVolume(0.5)
      mixer.setVolume(1)
      expect(opened).toHaveBeenCalledTimes(1)
      const play = () => mixer.play('break', 'stone', { gain: 1, pan: 0 })
      expect(play()).toBe(true)
      page.hidden = true
      expect(play()).toBe(false)
    } finally {
      vi.unstubAllGlobals()
    }
  })
})
