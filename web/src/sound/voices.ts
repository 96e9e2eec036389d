// The sounds that play at the same time: a bounded number. A louder one takes the place of the quietest.

interface Voice {
  gain: number
  /** When it ends, in seconds. */
  end: number
  stop(): void
}

export const MAX_VOICES = 16

export class Voices {
  private playing: Voice[] = []

  /** Makes room for a sound; returns false if all others are as loud. */
  makeRoom(gain: number, now: number): boolean {
    this.playing = this.playing.filter(({ end }) => end > now)
    if (this.playing.length < MAX_VOICES) return true
    const quietest = this.playing.reduce((a, b) => (b.gain < a.gain ? b : a))
    if (quietest.gain >= gain) return false
    quietest.stop()
    this.playing.splice(this.playing.indexOf(quietest), 1)
    return true
  }

  add(voice: Voice): void {
    this.playing.push(voice)
  }
}
