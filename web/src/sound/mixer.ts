// Plays sounds that are computed, and of the surroundings filtered noise. Nothing is loaded. The graph: up to MAX_VOICES short sounds and
// four endless ones, then a filter for ears under water; music beside it; the volume, and a limiter.

import { SILENCE, type Ambience } from './ambience'
import type { Heard } from './hearing'
import type { Material, SoundKind } from './kinds'
import type { Music } from './music'
import { RATE, soundOf, synthesise } from './synthesis'
import { Voices } from './voices'

/** How loud each kind is. */
const LOUDNESS: Record<SoundKind, number> = { break: 0.6, place: 0.5, use: 0.5, step: 0.22, hit: 0.8, gift: 0.4 }
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
  private readonly buffers = new Map<string, AudioBuffer>()
  private readonly voices = new Voices()
  private readonly ambience = {} as Record<keyof Ambience, GainNode>
  private muffle: BiquadFilterNode | null = null
  private master: GainNode | null = null
  private music: Music | null = null
  private loadingMusic = false
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
    const loudness = gain * LOUDNESS[kind]
    const now = this.context?.currentTime ?? 0
    if (document.hidden || this.context?.state === 'suspended') return false // they would be heard later, all at once
    if (this.volume === 0 || !this.voices.makeRoom(loudness, now)) return false
    const { context, muffle } = this
    if (!context || !muffle) return true
    const source = context.createBufferSource()
    const buffer = (source.buffer = this.bufferOf(context, kind, material))
    const rate = (source.playbackRate.value = 0.9 + 0.2 * Math.random())
    const level = context.createGain()
    level.gain.value = loudness
    const side = context.createStereoPanner()
    side.pan.value = pan
    source.connect(level).connect(side).connect(muffle)
    source.start(now)
    source.onended = () => side.disconnect()
    const stop = () => {
      source.stop()
      side.disconnect()
    }
    this.voices.add({ gain: loudness, end: now + buffer.duration / rate, stop })
    return true
  }

  private bufferOf(context: AudioContext, kind: SoundKind, material: Material): AudioBuffer {
    const name = soundOf(kind, material)
    let buffer = this.buffers.get(name)
    if (!buffer) {
      const samples = synthesise(kind, material)
      buffer = context.createBuffer(1, samples.length, RATE)
      buffer.getChannelData(0).set(samples)
      this.buffers.set(name, buffer)
    }
    return buffer
  }

  /** Sets how loud the music is, 0 to 1; called often, see Music. */
  playMusic(loudness: number): void {
    if (this.music) this.music.update(this.volume === 0 ? 0 : loudness)
    else if (loudness > 0 && this.context && !this.loadingMusic) void this.loadMusic()
  }

  private async loadMusic(): Promise<void> {
    this.loadingMusic = true
    try {
      const { Music } = await import('./music')
      const { context, master } = this
      if (context && master) this.music = new Music(context, master)
      this.loadingMusic = false
    } catch (reason) {
      console.warn('music', reason) // it is not tried again: the node may have another version now
    }
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
    const noise = context.createBuffer(1, 3 * context.sampleRate, context.sampleRate)
    const samples = noise.getChannelData(0)
    for (let i = 0; i < samples.length; i++) samples[i] = Math.random() * 2 - 1
    const master = (this.master = context.createGain())
    const muffle = (this.muffle = context.createBiquadFilter())
    muffle.frequency.value = CLEAR
    const limiter = context.createDynamicsCompressor()
    limiter.threshold.value = -6
    limiter.ratio.value = 20
    muffle.connect(master).connect(limiter).connect(context.destination)
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
