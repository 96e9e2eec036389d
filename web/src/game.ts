// The game: owns world, body, view and session, and runs the frame loop. What is on the screen besides the world is
// the HUD's business (hud/), what the buttons do the hands' (player/hands).

import { Hud, type Screen } from './hud/hud'
import { Sound } from './hud/sound'
import type { Who } from './hud/title'
import { Controls } from './input/controls'
import { MeshScheduler } from './mesh/scheduler'
import { loadIdentity } from './net/identity'
import { MAX_VIEW, type GiftEvent, type HitEvent, type Welcome } from './net/protocol'
import { Session } from './net/session'
import { Body, EYE, bodyTouchesBlock, type Intent } from './player/body'
import { BlockInteraction, LEFT, MIDDLE, RIGHT } from './player/block-interaction'
import { anglesOf } from './player/ray'
import { Avatars } from './render/avatars'
import type { Camera } from './render/camera'
import { View } from './render/view'
import { debugRows, type Meter } from './debug-rows'
import { QualityGovernor, effectiveQuality } from './quality-governor'
import { saveSettings, type Settings } from './settings'
import type { TestHook, TestState } from './testhook'
import { raiseBackdrop } from './world/backdrop'
import { AIR, PLACEABLE, WATER, boxOf, kindOf } from './world/blocks'
import { World } from './world/world'

const TURN = 0.0023 // radians a pixel of the mouse
const STEEPEST = Math.PI / 2 - 0.01
const STEP = 0.05 // seconds: longer frames are walked in several steps
const STILL: Intent = { forward: 0, right: 0, up: false, down: false, fast: false }
const BACKDROP_VIEW = 5
const BACKDROP_MINUTES = 16.6 * 60
const TELL_MS = 200
const HANDFUL = 10 // blocks given at once with Shift
const EDIT_MESHES = 8 // sections that an edit in a corner has meshed again
const STRIDE = 2.1 // blocks between two sounds of steps

export class Game implements TestHook {
  readonly world = new World()
  readonly body = new Body()
  readonly session: Session
  readonly meshes: MeshScheduler
  readonly view: View
  readonly avatars = new Avatars(this.world)
  private readonly hud: Hud
  private readonly controls: Controls
  private readonly hands: BlockInteraction
  private readonly sound = new Sound()
  private readonly pace = new QualityGovernor()
  private readonly meter: Meter = { fps: 0, frames: 0, received: 0, sent: 0, receivedRate: 0, sentRate: 0 }
  private current: Screen = 'title'
  private slot = 0
  private last = 0
  private told = 0
  private askedView = 0
  private joinedView = 0
  private strode = 0
  private blows = 0

  constructor(
    canvas: HTMLCanvasElement,
    hudRoot: HTMLElement,
    url: string,
    private readonly settings: Settings,
  ) {
    this.view = new View(canvas, settings.smoothEdges)
    this.view.add(this.avatars.group)
    this.meshes = new MeshScheduler(this.world, this.view.terrain)
    this.hud = new Hud(hudRoot, settings, {
      play: (who) => this.play(who),
      resume: () => void this.resume(),
      leave: () => this.toTitle(null),
      choose: (slot) => this.choose(slot),
      take: (block) => {
        this.settings.hotbar[this.slot] = block
        this.choose(this.slot)
        this.save()
      },
      say: (text) => this.session.say(text),
      settingsChanged: () => this.applySettings(),
    })
    this.session = new Session(url, this.world, this.avatars, this.body, {
      joined: (welcome, first, moved) => this.joined(welcome, first, moved),
      away: (text) => {
        if (this.current === 'title') this.hud.title.tell(text)
        else this.hud.messages.away(text)
      },
      refused: (text) => this.toTitle(text),
      toast: (text) => this.hud.messages.toast(text),
      said: (said) => this.hud.chat.said(said.player, said.name, said.text),
      struck: (struck) => this.struck(struck),
      given: (given) => this.given(given),
      built: (block) => this.hud.hotbar.placed(block),
      notice: (text) => this.hud.chat.notice(text),
    })
    this.controls = new Controls(canvas, {
      pressed: (code) => this.pressed(code),
      pressedJumpTwice: () => this.toggleFlying(),
      clicked: (button) => this.hands.press(button, performance.now()),
      wheeled: (steps) => this.choose((this.slot + steps + 9) % 9),
      freed: () => this.go('menu'),
    })
    this.hands = new BlockInteraction(this.world, this.body, {
      edit: (x, y, z, block) => this.session.edit(x, y, z, block, performance.now()),
      inHand: () => this.settings.hotbar[this.slot],
      pick: (block) => this.pick(block),
      anyoneTouches: (x, y, z) => this.avatars.some((ax, ay, az) => bodyTouchesBlock(ax, ay, az, x, y, z)),
      person: (origin, dir, reach) => this.avatars.aimed(origin, dir, reach),
      hit: (person) => this.session.hit(person.player),
      broke: (x, y, z, block) => {
        this.view.particles.burst(x - this.view.originX, y, z - this.view.originZ, block)
        this.sound.broke(kindOf(block).name)
      },
      placed: (block) => this.sound.placed(kindOf(block).name),
      swing: () => this.view.hand.swing(),
    })
    window.addEventListener('keydown', (event) => {
      const closes = event.code === 'Escape' || event.code === 'KeyE'
      if (this.current !== 'blocks' || !closes || event.repeat || event.defaultPrevented) return
      event.preventDefault()
      void this.resume()
    })
    this.applySettings()
    this.choose(0)
    this.toTitle(null)
    document.addEventListener('visibilitychange', () => this.pace.restart(performance.now())) // hidden, it drew nothing
    requestAnimationFrame((now) => this.frame(now))
  }

  // --- screens

  private go(screen: Screen): void {
    this.current = screen
    if (screen !== 'play') this.controls.release()
    this.hud.screen(screen)
    this.view.showHand = screen !== 'title'
  }

  private toTitle(trouble: string | null): void {
    this.session.leave()
    this.hud.messages.away(null)
    this.go('title')
    if (trouble) this.hud.title.open(trouble)
    this.view.setDistance(BACKDROP_VIEW)
    raiseBackdrop(this.world)
  }

  private play(who: Who): void {
    this.settings.name = who.name
    this.settings.guest = who.guest
    this.save()
    this.sound.wake()
    this.hud.title.busy(true)
    const { view } = this.drawn()
    this.askedView = this.joinedView = view
    this.session.join({
      name: who.name,
      view,
      identity: who.guest ? null : loadIdentity(localStorage),
    })
  }

  private joined(welcome: Welcome, first: boolean, moved: boolean): void {
    this.hands.reach = welcome.reach
    this.joinedView = this.askedView
    this.view.setDistance(welcome.view)
    this.hud.messages.away(null)
    this.hud.menu.describe(`${welcome.name}${welcome.guest ? ' (guest)' : ''} in ${welcome.world_name}`)
    if (!first) {
      if (!moved) this.hud.messages.toast('Back again.') // else there is nothing to tell
      return
    }
    this.body.flying = false
    this.hud.hotbar.forget()
    this.hud.chat.notice(`Welcome to ${welcome.world_name}, ${welcome.name}.`)
    void this.resume()
  }

  private async resume(): Promise<void> {
    this.sound.wake()
    this.go('play')
    if (!(await this.controls.capture()) && this.current === 'play') this.go('menu')
  }

  // --- keys

  private pressed(code: string): void {
    if (/^Digit[1-9]$/.test(code)) this.choose(Number(code[5]) - 1)
    else if (code === 'KeyE') this.go('blocks')
    else if (code === 'KeyT' || code === 'Enter') this.go('chat')
    else if (code === 'KeyG') this.give()
    else if (code === 'KeyF') this.toggleFlying()
    else if (code === 'F3') this.hud.debug.toggle()
  }

  private toggleFlying(): void {
    this.body.flying = !this.body.flying
    if (this.body.flying) this.body.vy = 0
    this.hud.messages.toast(this.body.flying ? 'Flying. Space rises, Shift sinks.' : 'Walking.')
  }

  private choose(slot: number): void {
    this.slot = slot
    this.hud.hotbar.show(this.settings.hotbar, slot)
    this.view.hand.hold(this.settings.hotbar[slot])
  }

  private pick(block: number): void {
    if (!PLACEABLE.includes(block)) return
    const slot = this.settings.hotbar.indexOf(block)
    if (slot < 0) this.settings.hotbar[this.slot] = block
    this.choose(slot < 0 ? this.slot : slot)
  }

  // --- other players

  /** Gives the player aimed at of the block in hand: one, or a handful with Shift. */
  private give(): void {
    this.hands.look()
    const { person } = this.hands
    if (!person) {
      this.hud.messages.toast('Look at a player to give away the block in your hand.')
      return
    }
    const handful = this.controls.holdsKey('ShiftLeft') || this.controls.holdsKey('ShiftRight')
    this.view.hand.swing()
    this.session.give(person.player, this.settings.hotbar[this.slot], handful ? HANDFUL : 1)
  }

  private struck({ player, name, to, to_name }: HitEvent): void {
    this.avatars.act(player, to, true)
    this.hud.chat.deed(...this.pair(player, name, ' hits ', to, to_name))
    this.sound.blow()
    if (to !== this.session.welcome?.player) return
    const from = this.avatars.shownAt(player)
    this.body.knock(from?.x ?? this.body.x, from?.z ?? this.body.z)
    this.hud.ouch()
    this.blows++
  }

  private given({ player, name, to, to_name, block, count }: GiftEvent): void {
    this.avatars.act(player, to, false)
    this.hud.chat.deed(...this.pair(player, name, ' gives ', to, to_name), ` ${count} × ${kindOf(block).name}`)
    if (to !== this.session.welcome?.player) return
    this.sound.gift()
    if (!PLACEABLE.includes(block)) return // of a newer world
    if (!this.settings.hotbar.includes(block)) {
      this.settings.hotbar[this.slot === 8 ? 7 : 8] = block // not into the hand that is building
      this.hud.hotbar.show(this.settings.hotbar, this.slot)
    }
    this.hud.hotbar.given(block, count)
  }

  /** Two players and what stands between them, for the chat. */
  private pair(player: string, name: string, does: string, to: string, toName: string) {
    const self = this.session.welcome?.player
    return [{ player, name }, does, { player: to, name: to === self ? 'you' : toName }]
  }

  // --- settings

  private applySettings(): void {
    this.view.setFieldOfView(this.settings.fieldOfView)
    this.sound.on = this.settings.sound
    this.save()
    this.applyQuality()
  }

  /** What is drawn of what the player wants. */
  private drawn() {
    return effectiveQuality(this.settings, this.pace.step)
  }

  private applyQuality(): void {
    const { view, renderScale } = this.drawn()
    this.view.setScale(renderScale)
    this.hud.menu.showEffectiveQuality(this.settings, { view, renderScale })
    const welcome = this.session.welcome
    if (!welcome || view === this.askedView) return
    // a grant below what was asked for is the most that this world gives
    const most = welcome.view < this.joinedView ? welcome.view : MAX_VIEW
    this.askedView = view
    this.session.connection.setView(this.askedView)
    this.view.setDistance(Math.min(this.askedView, most))
  }

  private save(): void {
    saveSettings(localStorage, this.settings)
  }

  // --- the loop

  private frame(now: number): void {
    requestAnimationFrame((next) => this.frame(next))
    const dt = Math.min(0.25, Math.max(0, (now - this.last) / 1000))
    this.last = now
    this.meter.frames++
    if (dt > 0) this.meter.fps += (1 / dt - this.meter.fps) * 0.06
    const inWorld = this.current !== 'title'
    if (inWorld) this.live(now, dt)
    // while land arrives and is meshed, the cores are busy with other things than drawing; an edit is no more than a few meshes
    if (!inWorld || this.meshes.backlog > EDIT_MESHES) this.pace.restart(now)
    else if (this.pace.frame(now) && this.settings.adaptive) this.applyQuality()
    const eyes = inWorld ? this.eyes() : this.orbit(now / 1000)
    this.view.look(eyes)
    const aim = inWorld && this.current !== 'menu' ? this.hands.aim : null
    this.view.outlineBlock(aim, boxOf(aim ? this.world.get(aim.x, aim.y, aim.z) : AIR))
    this.avatars.update(now, dt, eyes, this.view.originX, this.view.originZ)
    this.meshes.pump(eyes.x, eyes.z)
    const minutes = inWorld ? this.session.clock.minutesAt(now) : BACKDROP_MINUTES
    this.view.draw(eyes, minutes, this.submerged(eyes), now / 1000, dt, this.speed())
    if (now - this.told > TELL_MS) this.tell(now)
  }

  private live(now: number, dt: number): void {
    const { body } = this
    const turn = this.controls.consumeTurn()
    const factor = TURN * this.settings.sensitivity
    body.yaw = (body.yaw + turn.x * factor) % (2 * Math.PI)
    body.pitch = Math.max(-STEEPEST, Math.min(STEEPEST, body.pitch - turn.y * factor))
    if (this.world.loaded(Math.floor(body.x), Math.floor(body.z))) {
      const intent = this.current === 'play' ? this.controls.intent() : STILL
      for (let left = dt; left > 1e-6; left -= STEP) body.step(this.world, intent, Math.min(STEP, left))
      this.makeStepSounds(dt)
    }
    this.session.sendPose(now)
    this.session.drift(now)
    this.hands.look()
    if (this.current !== 'play') return
    for (const button of [LEFT, RIGHT, MIDDLE]) if (this.controls.holds(button)) this.hands.hold(button, now)
  }

  private makeStepSounds(dt: number): void {
    const { body } = this
    this.strode = body.onGround ? this.strode + this.speed() * dt : 0
    if (this.strode < STRIDE) return
    this.strode = 0
    this.sound.step(kindOf(this.world.get(Math.floor(body.x), Math.floor(body.y - 0.5), Math.floor(body.z))).name)
  }

  private speed(): number {
    return this.body.onGround ? Math.hypot(this.body.vx, this.body.vz) : 0
  }

  private eyes(): Camera {
    const { x, y, z, yaw, pitch } = this.body
    return { x, y: y + EYE, z, yaw, pitch }
  }

  /** The camera of the title screen: slowly around the island. */
  private orbit(seconds: number): Camera {
    const angle = seconds * 0.04 + 0.6
    const x = Math.cos(angle) * 88
    const z = Math.sin(angle) * 88
    const y = 52 + 4 * Math.sin(seconds * 0.11)
    return { x, y, z, ...anglesOf(-x, 24 - y, -z) }
  }

  private submerged(eyes: Camera): boolean {
    const x = Math.floor(eyes.x)
    const z = Math.floor(eyes.z)
    if (this.world.get(x, Math.floor(eyes.y), z) !== WATER) return false
    const surface = this.world.get(x, Math.floor(eyes.y) + 1, z) === WATER ? 1 : 0.875
    return eyes.y - Math.floor(eyes.y) < surface
  }

  /** Brings slow panels up to date. */
  private tell(now: number): void {
    const { body } = this
    this.told = now
    if (this.hud.debug.open) this.hud.debug.show(debugRows(this, this.meter))
    if (this.current !== 'play') return
    const listed = this.controls.holdsKey('Tab')
    this.hud.players.toggle(listed)
    const welcome = this.session.welcome
    if (!listed || !welcome) return
    const self = { player: welcome.player, name: welcome.name, guest: welcome.guest, distance: null }
    const others = this.avatars.list().map((other) => ({
      ...other,
      distance: Math.hypot(other.x - body.x, other.y - body.y, other.z - body.z),
    }))
    this.hud.players.show(welcome.world_name, [self, ...others.sort((a, b) => a.distance - b.distance)])
  }

  // --- for tests

  state(): TestState {
    const { x, y, z, yaw, pitch, flying, onGround } = this.body
    const { calls, triangles } = this.view.stats
    return {
      connected: this.session.connection.open,
      screen: this.current,
      world: this.session.welcome?.world ?? '',
      player: this.session.welcome?.player ?? '',
      name: this.session.welcome?.name ?? '',
      gateway: this.session.welcome?.gateway ?? '',
      x, y, z, yaw, pitch, flying, onGround,
      chunksLoaded: this.world.size,
      chunksMeshed: this.meshes.meshed,
      meshBacklog: this.meshes.backlog,
      pendingEdits: this.session.edits.waiting.length,
      acknowledgedEdits: this.session.acknowledged,
      hotbarSlot: this.slot,
      hotbar: [...this.settings.hotbar],
      gifts: this.settings.hotbar.map((block) => this.hud.hotbar.left(block)),
      aimedPlayer: this.hands.person?.player ?? '',
      blows: this.blows,
      others: this.avatars.list().map(({ player, name, x, y, z }) => ({ player, name, x, y, z })),
      fps: this.meter.fps,
      ping: this.session.connection.ping,
      drawCalls: calls,
      triangles,
      frames: this.meter.frames,
    }
  }

  blockAt(x: number, y: number, z: number): number {
    return this.world.get(x, y, z)
  }

  lookAt(x: number, y: number, z: number): void {
    const { body } = this
    const { yaw, pitch } = anglesOf(x + 0.5 - body.x, y + 0.5 - body.y - EYE, z + 0.5 - body.z)
    body.yaw = yaw
    body.pitch = Math.max(-STEEPEST, Math.min(STEEPEST, pitch))
    this.hands.look()
  }

  aim() {
    return this.hands.aim
  }
}
