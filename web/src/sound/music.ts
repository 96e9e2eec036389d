// A quiet piece that never ends the same way: slow chords, and now and then a few notes above them. It is computed bar by bar, and loaded
// when the player turns it on.

/** Seconds. */
export const BAR = 7
const AHEAD = 2 // that are scheduled
/** Of each chord, semitones from A2: the root, and what is above it. */
const CHORDS = [
  [0, 7, 12, 16], // A
  [-3, 4, 9, 16], // F sharp minor
  [5, 12, 17, 21], // D
  [7, 14, 19, 23], // E
] as const
/** Of the melody, semitones from A4: they fit to all chords. */
const MELODY = [-5, -3, 0, 2, 4, 7, 9]
const A2 = 110

export interface Note {
  /** Seconds from the beginning of the bar, and how long it lasts. */
  at: number
  seconds: number
  hz: number
  /** 0 to 1. */
  gain: number
}

/** Returns the notes of a bar. random returns numbers from 0 to 1. */
export function compose(bar: number, random: () => number = Math.random): Note[] {
  const chord = CHORDS[Math.floor(bar / 2) % CHORDS.length] ?? CHORDS[0]
  const hzOf = (semitones: number) => A2 * 2 ** (semitones / 12)
  const notes: Note[] = chord.map((semitones, i) => ({
    at: 0.15 * i,
    seconds: BAR + 2,
    hz: hzOf(semitones),
    gain: 0.05 / (1 + 0.3 * i),
  }))
  if (bar % 4 === 3) return notes // a rest
  let place = Math.floor(random() * MELODY.length)
  for (let beat = 0; beat < 4; beat++) {
    if (random() < 0.45) continue
    place = Math.min(MELODY.length - 1, Math.max(0, place + Math.floor(random() * 5) - 2))
    notes.push({ at: (beat * BAR) / 4, seconds: 3, hz: hzOf(24 + (MELODY[place] ?? 0)), gain: 0.045 })
  }
  return notes
}

export class Music {
  private readonly out: GainNode
  private bar = 0
  private next = 0 // when the next bar begins

  constructor(
    private readonly context: AudioContext,
    to: AudioNode,
  ) {
    this.out = context.createGain()
    this.out.gain.value = 0
    const soft = context.createBiquadFilter()
    soft.frequency.value = 1600
    this.out.connect(soft).connect(to)
  }

  /** Called at least once in AHEAD seconds; loudness is 0 to 1. */
  update(loudness: number): void {
    const { context } = this
    this.out.gain.setTargetAtTime(loudness ** 2, context.currentTime, 0.5)
    if (loudness === 0 || this.next > context.currentTime + AHEAD) return
    this.next = Math.max(this.next, context.currentTime + 0.1)
    for (const note of compose(this.bar)) this.play(note)
    this.bar++
    this.next += BAR
  }

  private play({ at, seconds, hz, gain }: Note): void {
    const { context } = this
    const from = this.next + at
    const envelope = context.createGain()
    envelope.gain.setValueAtTime(0, from)
    envelope.gain.linearRampToValueAtTime(gain, from + 0.25 * seconds)
    envelope.gain.linearRampToValueAtTime(0, from + seconds)
    envelope.connect(this.out)
    for (const detune of [-4, 4]) {
      const voice = context.createOscillator()
      voice.type = 'triangle'
      voice.frequency.value = hz
      voice.detune.value = detune
      voice.connect(envelope)
      voice.start(from)
      voice.stop(from + seconds)
      voice.onended = () => envelope.disconnect()
    }
  }
}
