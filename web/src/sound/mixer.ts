// Plays sounds made of filtered noise. Nothing is loaded. The graph: up to MAX_VOICES short sounds and four endless ones,
// then a filter for ears under water, and the volume.

import { SILENCE, type Ambience } from './ambience'
import type { Heard } from './hearing'
import type { Material, SoundKind } from './kinds'
import { Voices } from './voices'

/** The pitch of the noise in Hz, and how long it rings. */
const TONES: Record<Material, [pitch: number, ring: number]> = {
  stone: [900, 1],
  soft: [420, 0.9],
  leaves: [3200, 0.7],
  wood: [620, 1],
  glass: [2600, 1.4],
  metal: [1700, 2.2],
  water: [520, 1.6],
}
/** The pitch as a factor on the material's, the loudness, and the length in seconds. */
const KINDS: Record<SoundKind, [pitch: number, loudness: number, seconds: number]> = {
  break: [1, 0.24, 0.16],
  place: [0.7, 0.22, 0.09],
  use: [0.45, 0.22, 0.14],
  step: [0.55, 0.1, 0.07],
  hit: [0.2, 0.3, 0.14],
  gift: [1.7, 0.14, 0.12],
}
/** The filter over the noise, and how loud it is at most. */
const AMBIENCE: Record<keyof Ambience, [type: BiquadFilterType, pitch: number, q: number, loudness: number]> = {
  water: ['bandpass', 640, 0.6, 0.05],
  wind: ['bandpass', 260, 0.8, 0.06],
  cave: ['lowpass', 95, 4, 0.09],
  rain: ['highpass', 1800, 0.4, 0.02],
}
const NAMES = ['water', 'wind', 'cave', 'rain'] as const
const BREATH = 0.13 // Hz: wind and water rise and fall
const CLEAR = 20_000 // Hz, of the filter above water
const MUFFLED = 480
const FADE = 0.7 // seconds

export class Mixer {
  private context: AudioContext | null = null
  private noise: AudioBuffer | null = null
  private readonly voices = new Voices()
  private readonly ambience = {} as Record<keyof Ambience, GainNode>
  private muffle: BiquadFilterNode | null = null
  private master: GainNode | null = null
  private volume = 0
  private missing = false // the browser has no output

  constructor() {
    // browsers allow sound after a click or a key, and some only in their handlers
    for (const type of ['pointerdown', 'keydown']) window.addEventListener(type, () => this.apply())
    document.addEventListener('visibilitychange', () => this.apply())
  }

  /** Sets the volume, 0 to 1; at 0 nothing is computed. */
  setVolume(volume: number): void {
    this.volume = volume
    this.apply()
  }

  /** Plays a sound as it is heard; returns false if too many louder ones play. */
  play(kind: SoundKind, material: Material, { gain, pan }: Heard): boolean {
    const [factor, loudness, length] = KINDS[kind]
    const [tone, ring] = TONES[material]
    const now = this.context?.currentTime ?? 0
    const seconds = length * ring
    if (document.hidden || this.context?.state === 'suspended') return false // they would be heard later, all at once
    if (this.volume === 0 || !this.voices.makeRoom(gain * loudness, now)) return false
    const { context, noise, muffle } = this
    if (!context || !noise || !muffle) return true
    const source = context.createBufferSource()
    source.buffer = noise
    source.playbackRate.value = 0.8 + 0.4 * Math.random()
    const filter = context.createBiquadFilter()
    filter.type = 'bandpass'
    filter.frequency.value = tone * factor * (0.9 + 0.2 * Math.random())
    filter.Q.value = 1.1 * ring
    const level = context.createGain()
    level.gain.setValueAtTime(Math.max(1e-4, gain * loudness), now)
    level.gain.exponentialRampToValueAtTime(1e-4, now + seconds)
    const side = context.createStereoPanner()
    side.pan.value = pan
    source.connect(filter).connect(level).connect(side).connect(muffle)
    source.start(now, Math.random(), seconds + 0.05)
    source.onended = () => side.disconnect()
    const stop = () => {
      source.stop()
      side.disconnect()
    }
    this.voices.add({ gain: gain * loudness, end: now + seconds, stop })
    return true
  }

  /** Fades to what is heard of the surroundings. */
  surround(ambience: Ambience, underWater: boolean): void {
    const { context } = this
    if (!context) return
    const now = context.currentTime
    for (const name of NAMES) this.ambience[name].gain.setTargetAtTime(ambience[name] * AMBIENCE[name][3], now, FADE)
    this.muffle?.frequency.setTargetAtTime(underWater ? MUFFLED : CLEAR, now, 0.05)
  }

  /** Opens the output when it is needed first, which is after a click on Play, and lets it rest while nothing can be heard. */
  private apply(): void {
    const audible = this.volume > 0 && !document.hidden
    if (audible && !this.context && !this.missing) this.open()
    const { context, master } = this
    if (!context || !master) return
    master.gain.value = this.volume ** 2 // as loud as the slider looks
    if (audible && context.state !== 'running') void context.resume().catch(() => undefined)
    else if (!audible && context.state === 'running') void context.suspend()
  }

  private open(): void {
    let context: AudioContext
    try {
      context = this.context = new AudioContext()
    } catch {
      this.missing = true
      return
    }
    const noise = (this.noise = context.createBuffer(1, 3 * context.sampleRate, context.sampleRate))
    const samples = noise.getChannelData(0)
    for (let i = 0; i < samples.length; i++) samples[i] = Math.random() * 2 - 1
    const master = (this.master = context.createGain())
    const muffle = (this.muffle = context.createBiquadFilter())
    muffle.frequency.value = CLEAR
    muffle.connect(master).connect(context.destination)
    const source = context.createBufferSource()
    source.buffer = noise
    source.loop = true
    const breath = context.createOscillator()
    breath.frequency.value = BREATH
    for (const name of NAMES) {
      const [type, pitch, q] = AMBIENCE[name]
      const filter = context.createBiquadFilter()
      filter.type = type
      filter.frequency.value = pitch
      filter.Q.value = q
      const depth = context.createGain()
      depth.gain.value = pitch * 0.3
      breath.connect(depth).connect(filter.frequency)
      const gain = (this.ambience[name] = context.createGain())
      gain.gain.value = 0
      source.connect(filter).connect(gain).connect(muffle)
    }
    source.start()
    breath.start()
    this.surround(SILENCE, false)
  }
}
