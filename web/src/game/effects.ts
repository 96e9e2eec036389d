// What players hear, and the particles that they see: of everybody's edits, steps, hits and gifts, of the surroundings, and of the weather.
// Loaded after joining.

import type { Body } from '../player/body'
import type { Session } from '../net/session'
import type { Avatars } from '../render/avatars'
import { air } from '../render/glsl'
import { Particles, particlesAt } from '../render/particles'
import { Rain } from '../render/rain'
import type { View } from '../render/view'
import { ambienceAt } from '../sound/ambience'
import { Doors } from '../sound/doors'
import { hear } from '../sound/hearing'
import { materialOf, soundOfChange, type Material, type SoundKind } from '../sound/kinds'
import { Mixer } from '../sound/mixer'
import { Steps } from '../sound/steps'
import { WATER, isSolid, isStairs, kindOf } from '../world/blocks'
import { rainAt } from '../world/weather'
import type { World, WorldListener } from '../world/world'
import type { Frame, System } from './frame-loop'
import type { Scene } from './scene'
import type { Store } from './store'

export interface HeardSound {
  kind: SoundKind
  material: Material
  x: number
  y: number
  z: number
  /** 0 to 1. */
  gain: number
  /** −1 is left, 1 is right. */
  pan: number
}

const STEPS_MS = 100 // between two looks at who walks
const AMBIENCE_MS = 500
const MAX_HEARD = 32
const CLOUDED = 1.6 // as grey as rain is hard: the sky is wholly grey before it pours
const MAX_BURSTS = 8 // of particles in a frame
const PLACED = 0.3 // as many particles as of a block that breaks
const OWN_STEPS = 0.5 // as loud as those of others
const BEHIND = 3 // blocks: changes nearer than this are in sight

export class Effects implements System, WorldListener {
  /** The latest sounds, newest last. */
  readonly heard: HeardSound[] = []
  /** The number of blocks whose particles were shown. */
  shown = 0
  /** How hard it rains, 0 to 1. */
  raining = 0
  private readonly mixer = new Mixer()
  private readonly particles = new Particles()
  private readonly rain: Rain
  private readonly doors = new Doors()
  private readonly stillness = window.matchMedia('(prefers-reduced-motion: reduce)')
  private steps = new Map<string, Steps>() // by player; the own ones are under ''
  private steppedAt = 0 // ms
  private surroundedAt = 0 // ms
  private bursts = 0 // in this frame

  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Pick<Session, 'welcome' | 'clock'>,
    private readonly avatars: Pick<Avatars, 'list' | 'shownAt'>,
    private readonly scene: Pick<Scene, 'camera' | 'submerged'>,
    private readonly view: Pick<View, 'add' | 'originX' | 'originZ' | 'pixelsPerBlock'>,
  ) {
    this.rain = new Rain(world)
    view.add([this.particles.mesh, this.rain.mesh])
    world.listen(this)
  }

  applySettings(): void {
    const { sound, volume } = this.store.settings
    this.mixer.setVolume(sound && this.store.inWorld ? volume : 0)
  }

  update({ now, dt }: Frame): void {
    this.particles.update(dt, this.view.pixelsPerBlock)
    this.updateWeather(now)
    this.bursts = 0
    if (now - this.steppedAt > STEPS_MS) {
      this.steppedAt = now
      this.listenToSteps()
    }
    if (now - this.surroundedAt > AMBIENCE_MS) {
      this.surroundedAt = now
      this.applySettings()
      this.mixer.playMusic(this.store.inWorld ? this.store.settings.music : 0)
      const { camera, submerged } = this.scene
      this.mixer.surround(ambienceAt(this.world, camera.x, camera.y, camera.z, this.raining), submerged)
    }
  }

  /** Nothing falls with reduced motion or under water; the sky is grey all the same. */
  private updateWeather(now: number): void {
    const { welcome, clock } = this.session
    const shown = welcome && this.store.inWorld && this.store.settings.weather
    this.raining = shown ? rainAt(welcome.world, clock.daysAt(now)) : 0
    air.rain.value = Math.min(1, CLOUDED * this.raining)
    this.rain.update(this.stillness.matches || this.scene.submerged ? 0 : this.raining, this.scene.camera)
  }

  /** The number of drops and flakes that are drawn. */
  get drops(): number {
    return this.rain.drops
  }

  /** Plays a hit or a gift at the player who gets it. */
  interacted(kind: 'hit' | 'gift', to: string): void {
    const at = this.avatars.shownAt(to) ?? (to === this.session.welcome?.player ? this.body : null)
    if (!at) return
    const { x, y, z } = at
    this.play(kind, 'stone', x, y + 1, z)
  }

  blockChanged(x: number, y: number, z: number, before: number, after: number): void {
    if (this.world.hold) return // the past is shown
    if (isStairs(before) && kindOf(before).base === kindOf(after).base) return // they have become a corner
    const [kind, material] = soundOfChange(before, after)
    if (!this.doors.sounded(x, y, z, before, after, performance.now()))
      this.play(kind, material, x + 0.5, y + 0.5, z + 0.5)
    if (kind === 'break') this.burst(x, y, z, before, 1)
    else if (kind === 'place') this.burst(x, y, z, after, PLACED)
  }

  chunkChanged(): void {
    // what was loaded makes no sound
  }

  chunkRemoved(): void {
    // nor does what is gone
  }

  /** Shows particles of a block that can be seen; share is a factor on their number. */
  private burst(x: number, y: number, z: number, block: number, share: number): void {
    if (this.stillness.matches || this.bursts === MAX_BURSTS) return
    const { camera } = this.scene
    const [dx, dz] = [x + 0.5 - camera.x, z + 0.5 - camera.z]
    const distance = Math.hypot(dx, y + 0.5 - camera.y, dz)
    const ahead = (-dx * Math.sin(camera.yaw) + dz * Math.cos(camera.yaw)) * Math.cos(camera.pitch)
    const up = (y + 0.5 - camera.y) * Math.sin(camera.pitch)
    if (distance > BEHIND && ahead + up < 0) return
    const count = Math.ceil(particlesAt(distance) * share)
    if (count === 0) return
    this.bursts++
    this.shown++
    this.particles.burst(x - this.view.originX, y, z - this.view.originZ, block, count)
  }

  private listenToSteps(): void {
    const before = this.steps
    this.steps = new Map()
    if (this.world.hold) return // the past is shown
    const step = (
      player: string,
      { x, y, z }: { x: number; y: number; z: number },
      falls: boolean,
      loudness: number,
    ) => {
      const steps = before.get(player) ?? new Steps()
      this.steps.set(player, steps)
      const wet = this.world.get(Math.floor(x), Math.floor(y + 0.3), Math.floor(z)) === WATER
      const ground = wet ? WATER : this.world.get(Math.floor(x), Math.floor(y - 0.1), Math.floor(z))
      const walks = !falls && (wet || isSolid(ground))
      if (steps.move(x, y, z, walks)) this.play('step', materialOf(ground), x, y, z, loudness)
    }
    for (const { player } of this.avatars.list()) {
      const at = this.avatars.shownAt(player)
      if (at) step(player, at, false, 1)
    }
    const { body } = this
    if (this.store.inWorld) step('', body, !body.onGround && !body.inWater, OWN_STEPS)
  }

  private play(kind: SoundKind, material: Material, x: number, y: number, z: number, loudness = 1): void {
    const { gain, pan } = hear(this.scene.camera, { x, y, z })
    const heard = { kind, material, x, y, z, gain: gain * loudness, pan }
    if (gain === 0 || !this.mixer.play(kind, material, heard)) return
    this.heard.push(heard)
    if (this.heard.length > MAX_HEARD) this.heard.shift()
  }
}
