// The game: owns world, body, view and session, and runs the frame loop. hud/ draws everything over the world;
// player/block-interaction.ts handles the mouse buttons.

import { Hud, type Screen } from './hud/hud'
import { Sound } from './hud/sound'
import type { JoinChoice } from './hud/title'
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
import { QualityGovernor, effectiveQuality } from './settings/quality-governor'
import { saveSettings, type Settings } from './settings/settings'
import type { TestHook, TestState } from './testhook'
import { generateBackdrop } from './world/backdrop'
import { AIR, PLACEABLE, WATER, boxOf, kindOf } from './world/blocks'
import { World } from './world/world'

const RADIANS_PER_PIXEL = 0.0023 // of mouse movement
const MAX_PITCH = Math.PI / 2 - 0.01
const STEP = 0.05 // seconds: longer frames are simulated in several steps
const STILL: Intent = { forward: 0, right: 0, up: false, down: false, fast: false }
const BACKDROP_VIEW = 5
const BACKDROP_MINUTES = 16.6 * 60
const PANEL_MS = 200
const SHIFT_GIFT = 10 // blocks given at once with Shift
const EDIT_MESHES = 8 // sections meshed again after an edit in a corner
const FOOTSTEP_DISTANCE = 2.1 // blocks between two footstep sounds

export class Game implements TestHook {
  readonly world = new World()
  readonly body = new Body()
  readonly session: Session
  readonly meshes: MeshScheduler
  readonly view: View
  readonly avatars = new Avatars(this.world)
  private readonly hud: Hud
  private readonly controls: Controls
  private readonly interaction: BlockInteraction
  private readonly sound = new Sound()
  private readonly governor = new QualityGovernor()
  private readonly meter: Meter = { fps: 0, frames: 0, received: 0, sent: 0, receivedRate: 0, sentRate: 0 }
  private screen: Screen = 'title'
  private slot = 0
  private last = 0
  private panelsUpdated = 0 // ms
  private requestedView = 0
  private joinedView = 0
  private sinceFootstep = 0 // blocks
  private hitsTaken = 0

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
      play: (choice) => this.play(choice),
      resume: () => void this.resume(),
      leave: () => this.showTitle(null),
      selectSlot: (slot) => this.selectSlot(slot),
      selectBlock: (block) => {
        this.settings.hotbar[this.slot] = block
        this.selectSlot(this.slot)
        this.save()
      },
      chat: (text) => this.session.sendChat(text),
      settingsChanged: () => this.applySettings(),
    })
    this.session = new Session(url, this.world, this.avatars, this.body, {
      joined: (welcome, first, moved) => this.joined(welcome, first, moved),
      disconnected: (text) => {
        if (this.screen === 'title') this.hud.title.showError(text)
        else this.hud.messages.setBanner(text)
      },
      refused: (text) => this.showTitle(text),
      toast: (text) => this.hud.messages.toast(text),
      chat: (event) => this.hud.chat.addMessage(event.player, event.name, event.text),
      hit: (event) => this.showHit(event),
      gift: (event) => this.showGift(event),
      committed: (block) => this.hud.hotbar.countPlaced(block),
      notice: (text) => this.hud.chat.addNotice(text),
    })
    this.controls = new Controls(canvas, {
      keyPressed: (code) => this.keyPressed(code),
      jumpPressedTwice: () => this.toggleFlying(),
      clicked: (button) => this.interaction.press(button, performance.now()),
      scrolled: (steps) => this.selectSlot((this.slot + steps + 9) % 9),
      pointerReleased: () => this.showScreen('menu'),
    })
    this.interaction = new BlockInteraction(this.world, this.body, {
      edit: (x, y, z, block) => this.session.edit(x, y, z, block, performance.now()),
      selectedBlock: () => this.selectedBlock,
      pick: (block) => this.pick(block),
      anyoneTouches: (x, y, z) => this.avatars.anyTouches((ax, ay, az) => bodyTouchesBlock(ax, ay, az, x, y, z)),
      castPlayers: (origin, dir, reach) => this.avatars.castRay(origin, dir, reach),
      hit: (target) => this.session.sendHit(target.player),
      broke: (x, y, z, block) => {
        this.view.particles.burst(x - this.view.originX, y, z - this.view.originZ, block)
        this.sound.playBreak(kindOf(block).name)
      },
      placed: (block) => this.sound.playPlace(kindOf(block).name),
      swing: () => this.view.hand.swing(),
    })
    window.addEventListener('keydown', (event) => {
      const closes = event.code === 'Escape' || event.code === 'KeyE'
      if (this.screen !== 'blocks' || !closes || event.repeat || event.defaultPrevented) return
      event.preventDefault()
      void this.resume()
    })
    this.applySettings()
    this.selectSlot(0)
    this.showTitle(null)
    document.addEventListener('visibilitychange', () => this.governor.restart(performance.now())) // hidden pages draw no frames
    requestAnimationFrame((now) => this.frame(now))
  }

  // --- screens

  private showScreen(screen: Screen): void {
    this.screen = screen
    if (screen !== 'play') this.controls.release()
    this.hud.show(screen)
    this.view.showHand = screen !== 'title'
  }

  private showTitle(error: string | null): void {
    this.session.leave()
    this.hud.messages.setBanner(null)
    this.showScreen('title')
    if (error) this.hud.title.open(error)
    this.view.setDistance(BACKDROP_VIEW)
    generateBackdrop(this.world)
  }

  private play(choice: JoinChoice): void {
    this.settings.name = choice.name
    this.settings.guest = choice.guest
    this.save()
    this.sound.start()
    this.hud.title.setJoining(true)
    const { view } = this.quality()
    this.requestedView = this.joinedView = view
    this.session.join({
      name: choice.name,
      view,
      identity: choice.guest ? null : loadIdentity(localStorage),
    })
  }

  private joined(welcome: Welcome, first: boolean, moved: boolean): void {
    this.interaction.reach = welcome.reach
    this.joinedView = this.requestedView
    this.view.setDistance(welcome.view)
    this.hud.messages.setBanner(null)
    this.hud.menu.setWorld(`${welcome.name}${welcome.guest ? ' (guest)' : ''} in ${welcome.world_name}`)
    if (!first) {
      if (!moved) this.hud.messages.toast('Reconnected.') // a handoff is not shown
      return
    }
    this.body.flying = false
    this.hud.hotbar.clearGifts()
    this.hud.chat.addNotice(`Welcome to ${welcome.world_name}, ${welcome.name}.`)
    void this.resume()
  }

  private async resume(): Promise<void> {
    this.sound.start()
    this.showScreen('play')
    if (!(await this.controls.capture()) && this.screen === 'play') this.showScreen('menu')
  }

  // --- keys

  private keyPressed(code: string): void {
    if (/^Digit[1-9]$/.test(code)) this.selectSlot(Number(code[5]) - 1)
    else if (code === 'KeyE') this.showScreen('blocks')
    else if (code === 'KeyT' || code === 'Enter') this.showScreen('chat')
    else if (code === 'KeyG') this.give()
    else if (code === 'KeyF') this.toggleFlying()
    else if (code === 'F3') this.hud.debug.toggle()
  }

  private toggleFlying(): void {
    this.body.flying = !this.body.flying
    if (this.body.flying) this.body.vy = 0
    this.hud.messages.toast(this.body.flying ? 'Flying: Space up, Shift down' : 'Walking')
  }

  private get selectedBlock(): number {
    return this.settings.hotbar[this.slot] ?? AIR
  }

  private selectSlot(slot: number): void {
    this.slot = slot
    this.hud.hotbar.show(this.settings.hotbar, slot)
    this.view.hand.hold(this.selectedBlock)
  }

  private pick(block: number): void {
    if (!PLACEABLE.includes(block)) return
    const slot = this.settings.hotbar.indexOf(block)
    if (slot < 0) this.settings.hotbar[this.slot] = block
    this.selectSlot(slot < 0 ? this.slot : slot)
  }

  // --- other players

  /** Gives the selected block to the player aimed at: one, or SHIFT_GIFT with Shift. */
  private give(): void {
    this.interaction.updateAim()
    const { target } = this.interaction
    if (!target) {
      this.hud.messages.toast('Look at a player to give them the block you’re holding.')
      return
    }
    const shift = this.controls.holdsKey('ShiftLeft') || this.controls.holdsKey('ShiftRight')
    this.view.hand.swing()
    this.session.sendGift(target.player, this.selectedBlock, shift ? SHIFT_GIFT : 1)
  }

  private showHit({ player, name, to, to_name }: HitEvent): void {
    this.avatars.animateInteraction(player, to, true)
    this.hud.chat.addInteraction(...this.playerPair(player, name, ' hit ', to, to_name))
    this.sound.playHit()
    if (to !== this.session.welcome?.player) return
    const from = this.avatars.shownAt(player)
    this.body.knockBack(from?.x ?? this.body.x, from?.z ?? this.body.z)
    this.hud.flashHit()
    this.hitsTaken++
  }

  private showGift({ player, name, to, to_name, block, count }: GiftEvent): void {
    this.avatars.animateInteraction(player, to, false)
    this.hud.chat.addInteraction(
      ...this.playerPair(player, name, ' gave ', to, to_name),
      ` ${count} × ${kindOf(block).name}`,
    )
    if (to !== this.session.welcome?.player) return
    this.sound.playGift()
    if (!PLACEABLE.includes(block)) return // a block that only newer clients have
    if (!this.settings.hotbar.includes(block)) {
      this.settings.hotbar[this.slot === 8 ? 7 : 8] = block // never the selected slot
      this.hud.hotbar.show(this.settings.hotbar, this.slot)
    }
    this.hud.hotbar.addGift(block, count)
  }

  /** Returns the parts of a chat line about two players: the first name, the verb and the second name. */
  private playerPair(player: string, name: string, verb: string, to: string, toName: string) {
    const self = this.session.welcome?.player
    return [{ player, name }, verb, { player: to, name: to === self ? 'you' : toName }]
  }

  // --- settings

  private applySettings(): void {
    this.view.setFieldOfView(this.settings.fieldOfView)
    this.sound.on = this.settings.sound
    this.save()
    this.applyQuality()
  }

  /** The view distance and resolution in effect. */
  private quality() {
    return effectiveQuality(this.settings, this.governor.step)
  }

  private applyQuality(): void {
    const { view, renderScale } = this.quality()
    this.view.setScale(renderScale)
    this.hud.menu.showEffectiveQuality(this.settings, { view, renderScale })
    const welcome = this.session.welcome
    if (!welcome || view === this.requestedView) return
    // if the granted view was below the requested one, it is this world's maximum
    const max = welcome.view < this.joinedView ? welcome.view : MAX_VIEW
    this.requestedView = view
    this.session.connection.setView(this.requestedView)
    this.view.setDistance(Math.min(this.requestedView, max))
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
    const inWorld = this.screen !== 'title'
    if (inWorld) this.updatePlayer(now, dt)
    // ignore frames while chunks are being meshed, since meshing takes CPU time from drawing; an edit causes few meshes
    if (!inWorld || this.meshes.backlog > EDIT_MESHES) this.governor.restart(now)
    else if (this.governor.countFrame(now) && this.settings.adaptive) this.applyQuality()
    const camera = inWorld ? this.playerCamera() : this.titleCamera(now / 1000)
    this.view.setCamera(camera)
    const aim = inWorld && this.screen !== 'menu' ? this.interaction.aim : null
    this.view.outlineBlock(aim, boxOf(aim ? this.world.get(aim.x, aim.y, aim.z) : AIR))
    this.avatars.update(now, dt, camera, this.view.originX, this.view.originZ)
    this.meshes.pump(camera.x, camera.z)
    const minutes = inWorld ? this.session.clock.minutesAt(now) : BACKDROP_MINUTES
    this.view.draw(camera, minutes, this.isUnderWater(camera), now / 1000, dt, this.speed())
    if (now - this.panelsUpdated > PANEL_MS) this.updatePanels(now)
  }

  private updatePlayer(now: number, dt: number): void {
    const { body } = this
    const turn = this.controls.consumeTurn()
    const factor = RADIANS_PER_PIXEL * this.settings.sensitivity
    body.yaw = (body.yaw + turn.x * factor) % (2 * Math.PI)
    body.pitch = Math.max(-MAX_PITCH, Math.min(MAX_PITCH, body.pitch - turn.y * factor))
    if (this.world.loaded(Math.floor(body.x), Math.floor(body.z))) {
      const intent = this.screen === 'play' ? this.controls.intent() : STILL
      for (let left = dt; left > 1e-6; left -= STEP) body.step(this.world, intent, Math.min(STEP, left))
      this.playFootsteps(dt)
    }
    this.session.sendPose(now)
    this.session.extrapolate(now)
    this.interaction.updateAim()
    if (this.screen !== 'play') return
    for (const button of [LEFT, RIGHT, MIDDLE]) if (this.controls.holds(button)) this.interaction.hold(button, now)
  }

  private playFootsteps(dt: number): void {
    const { body } = this
    this.sinceFootstep = body.onGround ? this.sinceFootstep + this.speed() * dt : 0
    if (this.sinceFootstep < FOOTSTEP_DISTANCE) return
    this.sinceFootstep = 0
    this.sound.playFootstep(
      kindOf(this.world.get(Math.floor(body.x), Math.floor(body.y - 0.5), Math.floor(body.z))).name,
    )
  }

  private speed(): number {
    return this.body.onGround ? Math.hypot(this.body.vx, this.body.vz) : 0
  }

  private playerCamera(): Camera {
    const { x, y, z, yaw, pitch } = this.body
    return { x, y: y + EYE, z, yaw, pitch }
  }

  /** The camera of the title screen, which orbits the island. */
  private titleCamera(seconds: number): Camera {
    const angle = seconds * 0.04 + 0.6
    const x = Math.cos(angle) * 88
    const z = Math.sin(angle) * 88
    const y = 52 + 4 * Math.sin(seconds * 0.11)
    return { x, y, z, ...anglesOf(-x, 24 - y, -z) }
  }

  private isUnderWater({ x: cameraX, y, z: cameraZ }: Camera): boolean {
    const x = Math.floor(cameraX)
    const z = Math.floor(cameraZ)
    if (this.world.get(x, Math.floor(y), z) !== WATER) return false
    const surface = this.world.get(x, Math.floor(y) + 1, z) === WATER ? 1 : 0.875
    return y - Math.floor(y) < surface
  }

  /** Updates the panels that are not redrawn every frame. */
  private updatePanels(now: number): void {
    const { body } = this
    this.panelsUpdated = now
    if (this.hud.debug.open) this.hud.debug.show(debugRows(this, this.meter))
    if (this.screen !== 'play') return
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
      screen: this.screen,
      world: this.session.welcome?.world ?? '',
      player: this.session.welcome?.player ?? '',
      name: this.session.welcome?.name ?? '',
      gateway: this.session.welcome?.gateway ?? '',
      x,
      y,
      z,
      yaw,
      pitch,
      flying,
      onGround,
      chunksLoaded: this.world.size,
      chunksMeshed: this.meshes.meshed,
      meshBacklog: this.meshes.backlog,
      pendingEdits: this.session.edits.waiting.length,
      acknowledgedEdits: this.session.acknowledged,
      hotbarSlot: this.slot,
      hotbar: [...this.settings.hotbar],
      gifts: this.settings.hotbar.map((block) => this.hud.hotbar.giftsLeft(block)),
      aimedPlayer: this.interaction.target?.player ?? '',
      hitsTaken: this.hitsTaken,
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
    body.pitch = Math.max(-MAX_PITCH, Math.min(MAX_PITCH, pitch))
    this.interaction.updateAim()
  }

  aim() {
    return this.interaction.aim
  }
}
