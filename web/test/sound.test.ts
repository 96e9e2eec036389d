import { describe, expect, test, vi } from 'vitest'
import { particlesAt } from '../src/render/particles'
import { ambienceAt } from '../src/sound/ambience'
import { REACH, hear } from '../src/sound/hearing'
import { Doors } from '../src/sound/doors'
import { materialOf, soundOfChange } from '../src/sound/kinds'
import { Mixer } from '../src/sound/mixer'
import { BAR, compose } from '../src/sound/music'
import { Steps } from '../src/sound/steps'
import { LEVEL, RATE, loudest, soundOf, synthesise } from '../src/sound/synthesis'
import { MAX_VOICES, Voices } from '../src/sound/voices'
import { SOUNDS } from '../src/world/block-table'
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

/** Returns numbers from 0 to 1 that are the same each time. */
function seeded(seed: number): () => number {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return seed / 2 ** 32
  }
}

/** Returns the power of samples at frequencies a third of an octave apart, and its centre, in octaves above 50 Hz. */
function spectrumOf(samples: Float32Array): { powers: number[]; centre: number } {
  const powers: number[] = []
  for (let band = 0; band < 24; band++) {
    const step = (2 * Math.PI * 50 * 2 ** (band / 3)) / RATE
    let power = 0
    for (let from = 0; from < samples.length; from += 512) {
      let [re, im] = [0, 0]
      for (let i = from; i < Math.min(samples.length, from + 512); i++) {
        const hann = 0.5 - 0.5 * Math.cos((2 * Math.PI * (i - from)) / 512)
        re += hann * samples[i]! * Math.cos(step * i)
        im += hann * samples[i]! * Math.sin(step * i)
      }
      power += re * re + im * im
    }
    powers.push(power)
  }
  const sum = powers.reduce((a, b) => a + b)
  return { powers: powers.map((power) => power / sum), centre: powers.reduce((a, b, i) => a + (b * i) / 3, 0) / sum }
}

/** Returns after how many seconds a sound has nine tenths of its energy. */
function lengthOf(samples: Float32Array): number {
  const whole = samples.reduce((sum, sample) => sum + sample * sample, 0)
  let sum = 0
  return samples.findIndex((sample) => (sum += sample * sample) > 0.9 * whole) / RATE
}

describe('sounds', () => {
  const kinds = ['break', 'place', 'use', 'step', 'hit', 'gift'] as const
  const all = new Map(
    kinds.flatMap((kind) => SOUNDS.map((material) => [soundOf(kind, material), synthesise(kind, material, seeded(1))])),
  )

  test('are equally loud, and none is clipped', () => {
    expect(all.size).toBe(4 * SOUNDS.length + 2)
    for (const [name, samples] of all) {
      const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)
      expect(peak, name).toBeGreaterThan(LEVEL)
      expect(peak, name).toBeLessThan(0.98)
      expect(20 * Math.log10(loudest(samples) / LEVEL), name).toBeGreaterThan(-2)
      expect(Math.abs(samples.at(-1)!), name).toBeLessThan(0.05) // no click at the end
    }
  })

  test('can be told apart by their spectra or by their lengths', () => {
    const heard = [...all].map(([name, samples]) => ({ name, ...spectrumOf(samples), length: lengthOf(samples) }))
    const alike: string[] = []
    heard.forEach((a, i) => {
      for (const b of heard.slice(i + 1)) {
        const shared = a.powers.reduce((sum, power, band) => sum + Math.min(power, b.powers[band]!), 0) // 1 if they are the same
        const octaves = Math.abs(a.centre - b.centre)
        const lengths = Math.abs(Math.log2(a.length / b.length))
        if (octaves + lengths + 2 * (1 - shared) < 0.8)
          alike.push(`${a.name} and ${b.name}: ${octaves} ${lengths} ${shared}`)
      }
    })
    expect(alike).toEqual([])
  })

  test('of breaking and of placing, those of materials differ in their spectra alone', () => {
    for (const kind of ['break', 'place', 'step']) {
      const heard = SOUNDS.map((material) => ({ material, ...spectrumOf(all.get(`${kind} ${material}`)!) }))
      heard.forEach((a, i) => {
        for (const b of heard.slice(i + 1)) {
          const shared = a.powers.reduce((sum, power, band) => sum + Math.min(power, b.powers[band]!), 0)
          expect(shared, `${kind} of ${a.material} and ${b.material}`).toBeLessThan(0.75)
        }
      })
    }
  })
})

test('music is quiet, in one key, and rests', () => {
  const random = seeded(3)
  const bars = Array.from({ length: 64 }, (_, bar) => compose(bar, random))
  const scale = [0, 2, 4, 5, 7, 9, 11, 1, 8] // A major, with the seventh of D
  for (const note of bars.flat()) {
    expect(note.hz).toBeGreaterThan(80)
    expect(note.hz).toBeLessThan(1000)
    expect(scale).toContain(((Math.round(12 * Math.log2(note.hz / 110)) % 12) + 12) % 12)
  }
  // what sounds at the same time, of a bar and the end of the one before, with both oscillators of each note
  bars.slice(1).forEach((notes, i) => {
    const before = bars[i]!.filter(({ at, seconds }) => at + seconds > BAR)
    expect(2 * [...before, ...notes].reduce((sum, { gain }) => sum + gain, 0)).toBeLessThan(1)
  })
  expect(bars.filter((notes) => notes.length === 4).length).toBeGreaterThan(15)
  expect(new Set(bars.map((notes) => notes.map(({ hz, at }) => `${hz} ${at}`).join())).size).toBeGreaterThan(20)
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
