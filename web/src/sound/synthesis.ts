// Computes the sounds of blocks and of players: strokes on bodies that ring (modal synthesis), and noise in a band. Each is computed when
// it is played first. All have the same level; the mixer knows how loud each kind is.

import type { Material, SoundKind } from './kinds'

/** Samples a second. */
export const RATE = 24_000
/** The root mean square of the loudest LEVEL_S seconds. */
export const LEVEL = 0.15
export const LEVEL_S = 0.05

/** What is struck. */
interface Body {
  /** Frequencies in Hz, and the seconds after which each is at 1/e. */
  modes: [hz: number, decay: number][]
  noise: [hz: number, quality: number, decay: number]
  /** The share of the modes in a stroke; the rest is noise. */
  ring: number
  /** The number of strokes when it breaks. */
  strokes: number
}

const BODIES: Record<Material, Body> = {
  stone: {
    modes: [
      [420, 0.04],
      [1180, 0.03],
      [2230, 0.02],
    ],
    noise: [1500, 0.6, 0.05],
    ring: 0.45,
    strokes: 3,
  },
  soft: { modes: [], noise: [480, 0.6, 0.07], ring: 0, strokes: 3 },
  leaves: { modes: [], noise: [5200, 0.8, 0.04], ring: 0, strokes: 9 },
  wood: {
    modes: [
      [230, 0.1],
      [560, 0.08],
      [1210, 0.04],
    ],
    noise: [600, 0.8, 0.03],
    ring: 0.85,
    strokes: 2,
  },
  glass: {
    modes: [
      [2350, 0.2],
      [3710, 0.16],
      [5480, 0.13],
      [7900, 0.1],
    ],
    noise: [6500, 0.7, 0.03],
    ring: 0.75,
    strokes: 5,
  },
  metal: {
    modes: [
      [760, 0.32],
      [1790, 0.28],
      [3070, 0.24],
      [4960, 0.2],
    ],
    noise: [3000, 0.8, 0.02],
    ring: 0.92,
    strokes: 1,
  },
  water: { modes: [[480, 0.09]], noise: [800, 0.5, 0.12], ring: 0.5, strokes: 4 },
}
const FLESH: Body = { modes: [[95, 0.1]], noise: [420, 0.7, 0.03], ring: 0.7, strokes: 1 }
const CHIME: Body = {
  modes: [
    [1046, 0.22],
    [2093, 0.12],
  ],
  noise: [4000, 1, 0.005],
  ring: 0.98,
  strokes: 2,
}

/** What is done: factors on the frequencies and on the decays, the seconds from the first stroke to the last, and their number. */
interface Action {
  pitch: number
  length: number
  spread: number
  strokes: (body: Body) => number
  /** What is struck, if not the block. */
  body?: Body
  /** The factor on the pitch from stroke to stroke. */
  rise: number
}

const ACTIONS: Record<SoundKind, Action> = {
  break: { pitch: 1, length: 1, spread: 0.13, strokes: ({ strokes }) => strokes, rise: 0.95 },
  place: { pitch: 0.72, length: 0.6, spread: 0, strokes: () => 1, rise: 1 },
  use: { pitch: 0.85, length: 0.7, spread: 0.16, strokes: () => 2, rise: 0.7 },
  step: { pitch: 0.5, length: 0.45, spread: 0.03, strokes: ({ strokes }) => Math.min(2, strokes), rise: 0.9 },
  hit: { pitch: 1, length: 1, spread: 0, strokes: () => 1, body: FLESH, rise: 1 },
  gift: { pitch: 1, length: 1, spread: 0.11, strokes: () => 2, body: CHIME, rise: 1.5 },
}

/** The decays after which a stroke ends, at −35 dB. */
const DECAYS = 4

/** Returns the names of what sounds alike. */
export function soundOf(kind: SoundKind, material: Material): string {
  return ACTIONS[kind].body ? kind : `${kind} ${material}`
}

/** Returns the samples of a sound, between −1 and 1. random returns numbers from 0 to 1. */
export function synthesise(kind: SoundKind, material: Material, random: () => number = Math.random): Float32Array {
  const { pitch, length, spread, strokes, body = BODIES[material], rise } = ACTIONS[kind]
  const count = strokes(body)
  const decays = [body.noise[2], ...body.modes.map(([, decay]) => decay)].map((decay) => decay * length)
  const samples = new Float32Array(Math.ceil((spread * 1.2 + DECAYS * Math.max(...decays)) * RATE))
  for (let stroke = 0; stroke < count; stroke++) {
    const late = stroke === 0 ? 0 : (spread * (stroke - 0.3 + 0.6 * random())) / Math.max(1, count - 1)
    const loud = stroke === 0 ? 1 : 0.6 + 0.3 * random()
    const factor = pitch * rise ** stroke * (kind === 'gift' ? 1 : 0.94 + 0.12 * random())
    strike(samples.subarray(Math.min(samples.length, Math.round(late * RATE))), body, factor, length, loud, random)
  }
  return level(samples)
}

function strike(to: Float32Array, body: Body, pitch: number, length: number, loud: number, random: () => number): void {
  body.modes.forEach(([hz, decay], mode) => {
    // a resonator with two poles
    const r = Math.exp(-1 / (decay * length * RATE))
    const angle = (2 * Math.PI * hz * pitch) / RATE
    const turn = 2 * r * Math.cos(angle)
    let before = 0
    let now = (loud * body.ring * Math.sin(angle)) / (1 + 0.5 * mode)
    const end = Math.min(to.length, Math.round(DECAYS * decay * length * RATE))
    for (let i = 0; i < end; i++) {
      to[i] = (to[i] ?? 0) + now
      ;[before, now] = [now, turn * now - r * r * before]
    }
  })
  // white noise through a band-pass with two poles
  const [hz, quality, decay] = body.noise
  const angle = (2 * Math.PI * Math.min(hz * pitch, 0.45 * RATE)) / RATE
  const alpha = Math.sin(angle) / (2 * quality)
  const [a1, a2, b] = [(-2 * Math.cos(angle)) / (1 + alpha), (1 - alpha) / (1 + alpha), alpha / (1 + alpha)]
  const fade = Math.exp(-1 / (decay * length * RATE))
  let [x1, x2, y1, y2] = [0, 0, 0, 0]
  let loudness = 1.5 * loud * (1 - body.ring)
  const end = Math.min(to.length, Math.round(DECAYS * decay * length * RATE))
  for (let i = 0; i < end; i++) {
    const x = loudness * (2 * random() - 1)
    const y = b * (x - x2) - a1 * y1 - a2 * y2
    ;[x1, x2, y1, y2] = [x, x1, y, y1]
    loudness *= fade
    to[i] = (to[i] ?? 0) + y
  }
}

/** Returns the root mean square of the loudest part. */
export function loudest(samples: Float32Array): number {
  const window = Math.min(samples.length, Math.round(LEVEL_S * RATE))
  let sum = 0
  let most = 0
  samples.forEach((sample, i) => {
    sum += sample * sample - (i >= window ? (samples[i - window] ?? 0) ** 2 : 0)
    most = Math.max(most, sum)
  })
  return Math.sqrt(most / window)
}

/** Brings samples to LEVEL; rounds off what would be above 1. */
function level(samples: Float32Array): Float32Array {
  const factor = LEVEL / Math.max(1e-9, loudest(samples))
  return samples.map((sample) => Math.tanh(factor * sample))
}
