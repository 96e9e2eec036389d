// Sound effects made of filtered noise. Silent until the player's first click, because browsers block audio before one.

type Material = 'stone' | 'soft' | 'wood' | 'glass'

const PITCH: Record<Material, number> = { stone: 900, soft: 420, wood: 620, glass: 2600 }

export class Sound {
  private context: AudioContext | null = null
  private noise: AudioBuffer | null = null
  on = true

  /** Opens the audio output; must be called from a click or key press. */
  start(): void {
    if (!this.on || this.context || typeof AudioContext === 'undefined') return
    this.context = new AudioContext()
    const { sampleRate } = this.context
    this.noise = this.context.createBuffer(1, sampleRate, sampleRate)
    const samples = this.noise.getChannelData(0)
    for (let i = 0; i < samples.length; i++) samples[i] = Math.random() * 2 - 1
  }

  playBreak(block: string): void {
    this.thud(PITCH[materialOf(block)], 0.22, 0.16)
  }

  playPlace(block: string): void {
    this.thud(PITCH[materialOf(block)] * 0.7, 0.2, 0.09)
  }

  playHit(): void {
    this.thud(180, 0.3, 0.14)
  }

  playGift(): void {
    this.thud(1500, 0.12, 0.12)
  }

  playFootstep(block: string): void {
    this.thud(PITCH[materialOf(block)] * 0.55, 0.05, 0.07)
  }

  private thud(pitch: number, volume: number, seconds: number): void {
    const { context, noise } = this
    if (!this.on || !context || !noise) return
    const now = context.currentTime
    const source = context.createBufferSource()
    source.buffer = noise
    source.playbackRate.value = 0.8 + 0.4 * Math.random()
    const filter = context.createBiquadFilter()
    filter.type = 'bandpass'
    filter.frequency.value = pitch * (0.9 + 0.2 * Math.random())
    filter.Q.value = 1.1
    const gain = context.createGain()
    gain.gain.setValueAtTime(volume, now)
    gain.gain.exponentialRampToValueAtTime(0.001, now + seconds)
    source.connect(filter).connect(gain).connect(context.destination)
    source.start(now, Math.random() * 0.5, seconds + 0.05)
  }
}

function materialOf(name: string): Material {
  if (/glass|ice|lamp/i.test(name)) return 'glass'
  if (/log|plank/i.test(name)) return 'wood'
  if (
    /grass|dirt|sand|leaves|snow|clay|gravel|cactus|water|fern|poppy|dandelion|cornflower|daisy|bush|reeds/i.test(name)
  )
    return 'soft'
  return 'stone'
}
