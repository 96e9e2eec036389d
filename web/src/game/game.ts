// Wires the client together: creates its parts and systems, passes events up to the systems, and starts the frame loop.

import { Hud } from '../hud/hud'
import type { JoinChoice, Title } from '../hud/title'
import { Controls } from '../input/controls'
import { InputSwitch } from '../input/kind'
import { MeshScheduler } from '../mesh/scheduler'
import { indexedDBStorage } from '../net/cache-storage'
import { ChunkCache } from '../net/chunk-cache'
import { storeKey, storedKey } from '../net/identity'
import { placeIn, sharedPage } from '../net/place-link'
import { refusalMessage } from '../net/messages'
import { Session } from '../net/session'
import { BlockInteraction, LEFT, RIGHT } from '../player/block-interaction'
import { Body, EYE, bodyTouchesBlock } from '../player/body'
import { anglesOf } from '../player/ray'
import { Avatars } from '../render/avatars'
import { setOwnSkin } from '../render/figure'
import { View } from '../render/view'
import type { Action } from '../settings/bindings'
import type { Settings } from '../settings/settings'
import { storage } from '../settings/storage'
import { texts } from '../text/texts'
import { kindOf, useDoor } from '../world/blocks'
import type { PendingEdit } from '../world/edits'
import { World } from '../world/world'
import { Devices } from './devices'
import { FrameCounter, FrameLoop, type System } from './frame-loop'
import type { HintControl } from './hint-control'
import { HorizonControl, ShownChunks } from './horizon-control'
import { HotbarControl } from './hotbar-control'
import { listenToKeys } from './keyboard'
import { Lazy, LazySystem } from './lazy'
import { Movement } from './movement'
import { Panels } from './panels'
import { QualityControl } from './quality-control'
import { Scene } from './scene'
import { Screens } from './screens'
import { Store } from './store'
import type { TestHook } from './test-hook'

export interface Game {
  play(choice: JoinChoice): void
  /** Opens the dialog that takes over the key of another device. */
  bringKey(): void
  hook: TestHook
}

/** What a player says to wave, with a key or in the chat. */
const WAVE = 'o/'
const WAVE_MS = 2000

/** Starts the client on a canvas; url is the WebSocket of the page's own node. */
export function startGame(
  canvas: HTMLCanvasElement,
  hudRoot: HTMLElement,
  title: Title,
  url: string,
  settings: Settings,
): Game {
  let hints: HintControl | null = null // loaded for newcomers
  let wavedAt = -WAVE_MS
  let hintsLoading: Promise<void> | null = null
  const store = new Store(settings, storage)
  const world = new World()
  const body = new Body()
  const avatars = new Avatars(world)
  const view = new View(canvas, settings.smoothEdges)
  view.add(avatars.meshes)
  const shown = new ShownChunks(view.terrain)
  const meshes = new MeshScheduler(world, shown, () => hud.messages.toast(texts.landMissing))
  view.onContextLost(
    () => hud.messages.setBanner(texts.graphicsLost, 'graphics'),
    () => {
      hud.messages.setBanner(null, 'graphics')
      meshes.remeshAll()
    },
  )

  const hud = new Hud(hudRoot, title, settings, {
    partMissing,
    resume: () => void screens.resume(),
    chatClosed: () => {
      if (store.screen === 'chat') void screens.resume() // a command may have opened another one
    },
    leave: () => screens.showTitle(null),
    openPast,
    selectSlot: (slot) => hotbar.select(slot),
    selectBlock: (block) => {
      hotbar.setSelected(block)
      store.save()
    },
    chat: (text) => {
      if (text.startsWith('/')) return command(text.slice(1).trim())
      const sent = session.sendChat(text, settings.channel)
      if (sent) hints?.tick('chat')
      return sent
    },
    settingsChanged: () => applySettings(),
    changeCamera: () => {
      act('camera')
      void screens.resume()
    },
    player: () => session.welcome?.player ?? '',
    skinChosen: (skin) => {
      settings.skin = skin
      store.save()
      thirdPerson.part?.dress()
      session.connection.setSkin(skin)
    },
    shared: () => sharedPage(location.href, session.welcome?.url),
    place: () => body,
    key: () => {
      const secret = storedKey(storage)
      return secret && { secret, name: settings.name }
    },
    keyImported: ({ secret, name }) => {
      storeKey(storage, secret)
      settings.name = name
      settings.guest = false
      store.save()
    },
  })
  const session = new Session(
    url,
    world,
    avatars,
    body,
    {
      joined: (welcome, first, moved) => {
        interaction.reach = welcome.reach
        setOwnSkin(welcome.player, settings.skin)
        if (first) {
          build.part?.reset()
          loadParts()
        }
        screens.joined(welcome, first, moved)
        past.part?.joined()
        showHints()
      },
      disconnected: (reason) => screens.disconnected(reason),
      refused: (reason) => screens.showTitle(reason),
      toast: (text) => hud.messages.toast(text),
      chat: (event) => {
        chat.use((part) => part.showNearby(event))
        if (event.text === WAVE) avatars.wave(event.player)
      },
      line: (line) => chat.use((part) => part.showFar(line)),
      hit: (event) => {
        players.use((part) => part.showHit(event))
        effects.part?.interacted('hit', event.to)
      },
      gift: (event) => {
        players.use((part) => part.showGift(event))
        effects.part?.interacted('gift', event.to)
      },
      committed: (edit) => {
        if (!edit.changes) countPlaced(edit)
        build.use((part) => part.committed(edit))
      },
      rejected: (edit, error, again) => {
        if (!build.part?.rejected(edit, error, again) && !again) hud.messages.toast(refusalMessage(error))
      },
      notice: (text) => hud.chat.addNotice(text),
      permissions: ({ commands }) => {
        hud.chat.setCommands([...commands, { name: 'ignore', usage: 'NAME', help: texts.ignoreHelp }])
        visit()
      },
      rollback: (preview) => rollback.use((part) => part.propose(preview)),
      history: (page) => past.part?.answer(page),
    },
    new ChunkCache(indexedDBStorage()),
  )
  const input = new InputSwitch((kind) => devices.use(kind))
  const controls = new Controls(canvas, input, () => settings.bindings, {
    acted: (action) => act(action),
    slotChosen: (slot) => hotbar.select(slot),
    jumpPressedTwice: () => movement.toggleFlying(),
    clicked: (button) => {
      const now = performance.now()
      if (build.part?.click(button) || claims.part?.click(button) || inspect.part?.click(button, now))
        interaction.rest()
      else interaction.press(button, now)
    },
    turned: (x, y) => movement.turn(x, y),
    scrolled: (steps) => scroll(steps),
    pointerReleased: () => (document.hasFocus() ? act('menu') : screens.show('menu')),
  })
  const interaction: BlockInteraction = new BlockInteraction(world, body, {
    edit: (x, y, z, block) => mayEdit(x, y, z) && session.edit(x, y, z, block, performance.now()),
    selectedBlock: () => store.selectedBlock,
    pick: (block) => hotbar.pick(block),
    anyoneTouches: (x, y, z) => avatars.anyTouches((ax, ay, az) => bodyTouchesBlock(ax, ay, az, x, y, z)),
    castPlayers: (origin, dir, reach) => avatars.castRay(origin, dir, reach),
    hit: (target) => session.sendHit(target.player),
    broke: () => hints?.tick('break'),
    placed: () => hints?.tick('place'),
    swing: () => view.hand.swing(),
    write: (x, y, z) => {
      if (mayEdit(x, y, z)) signs.use((part) => part.open(x, y, z))
    },
  })

  const hotbar = new HotbarControl(store, hud.hotbar, view.hand)
  const quality = new QualityControl(store, session, meshes, view, hud)
  const screens = new Screens(store, world, body, session, controls, view, hud, quality)
  const chat = new Lazy(
    () =>
      import('./chat-control').then(
        ({ ChatControl }) => new ChatControl(hud.chat, settings, () => session.welcome?.name ?? ''),
      ),
    partMissing,
  )
  const players = new Lazy(
    () =>
      import('./player-interaction').then(
        ({ PlayerInteraction }) =>
          new PlayerInteraction(store, body, avatars, session, interaction, hotbar, view.hand, hud),
      ),
    partMissing,
  )
  const claims = new LazySystem(
    () =>
      import('./claim-control').then(
        ({ ClaimControl }) =>
          new ClaimControl(store, world, body, session, hud, () => view.loadClaimWalls(), interaction),
      ),
    partMissing,
  )
  const inspect = new LazySystem(
    () =>
      import('./inspect-control').then(({ InspectControl }) => new InspectControl(store, session, interaction, hud)),
    partMissing,
  )
  const rollback = new LazySystem(
    () =>
      import('./rollback-control').then(({ createRollback }) =>
        createRollback(store, world, body, session, screens, hud),
      ),
    partMissing,
  )
  const past = new LazySystem(
    () =>
      import('./past-control').then(({ createPast }) =>
        createPast(store, world, body, session, screens, hud, avatars, (x, y) => movement.turn(x, y)),
      ),
    partMissing,
  )
  const signs = new LazySystem(
    () =>
      import('./sign-control').then(({ createSigns }) =>
        createSigns(store, world, body, session, interaction, screens, hud, view),
      ),
    partMissing,
  )
  const build = new LazySystem(
    () =>
      import('./build-control').then(
        ({ BuildControl }) =>
          new BuildControl(store, world, body, session, avatars, interaction, screens, hud, view, () => {
            claims.part?.end()
            inspect.part?.stop()
          }),
      ),
    partMissing,
  )
  const movement = new Movement(
    store,
    world,
    body,
    controls,
    hud.messages,
    (from, to) => claims.part?.keepsOut(from, to) ?? false,
  )
  const actions: System = {
    update({ now }) {
      if (!store.inWorld) return
      session.sendPose(now)
      session.extrapolate(now)
      interaction.update(now, (button) => store.screen === 'play' && !choosing() && controls.holds(button))
    },
  }
  const horizon = new HorizonControl(store, body, session, meshes, shown, view)
  const thirdPerson = new LazySystem(
    () =>
      import('./third-person').then(
        ({ ThirdPerson }) => new ThirdPerson(store, world, body, session, avatars, view, hudRoot),
      ),
    partMissing,
  )
  const scene = new Scene(store, world, body, interaction, session.clock, avatars, meshes, view, thirdPerson)
  const effects = new LazySystem(
    () => import('./effects').then(({ Effects }) => new Effects(store, world, body, session, avatars, scene, view)),
    partMissing,
  )
  const counter = new FrameCounter()
  const panels: Panels = new Panels(
    store,
    body,
    avatars,
    session,
    controls,
    hud,
    screens,
    () => import('./debug-rows').then(({ DebugRows }) => new DebugRows(world, body, session, meshes, view, counter)),
    () =>
      import('./map-control').then(
        ({ MapControl }) => new MapControl(world, body, session, screens, () => panels.others()),
      ),
  )

  const tapAndHold = () => (choosing() || interaction.target ? ([LEFT, RIGHT] as const) : ([RIGHT, LEFT] as const))
  const devices = new Devices(
    canvas,
    store,
    input,
    controls,
    screens,
    scroll,
    interaction,
    hud,
    tapAndHold,
    partMissing,
  )

  /** Moves what a building tool holds, or selects the slot some steps further. */
  function scroll(steps: number): void {
    if (!build.part?.scroll(steps)) hotbar.select(store.slotAfter(steps))
  }

  /** Reports whether clicks choose something, instead of changing blocks. */
  function choosing(): boolean {
    return Boolean(build.part?.active || inspect.part?.on || claims.part?.choosing)
  }

  /** Reports whether the player may change a block. The node decides; until claims are loaded, only it. */
  function mayEdit(x: number, y: number, z: number): boolean {
    return claims.part?.mayEdit(x, y, z) ?? true
  }

  /** Goes to the place of the page's link, once. */
  function visit(): void {
    const place = placeIn(location.hash)
    if (!place || !session.mayUse('visit')) return
    session.sendCommand(`visit ${place.join(' ')}`)
    history.replaceState(null, '', location.pathname + location.search) // a reload keeps the player where they are
  }

  /** Carries out a command of the chat, without its slash; returns false if it cannot be sent now. */
  function command(line: string): boolean {
    if (line.toLowerCase() === 'inspect' && session.mayUse('inspect')) {
      build.part?.leaveTool()
      claims.part?.end()
      inspect.use((part) => part.toggle())
    } else if (line.startsWith('/')) build.use((part) => part.command(line.slice(1)))
    else if (line.toLowerCase() === 'past') openPast()
    else if (/^ignore\b/i.test(line)) {
      chat.use((part) => {
        part.toggleIgnored(line.slice('ignore'.length).trim())
        store.save()
      })
    } else if (/^claim\b/i.test(line)) {
      let sent = true
      claims.use((part) => {
        if (part.begin(line)) {
          build.part?.leaveTool()
          inspect.part?.stop()
        } else sent = session.sendCommand(line)
      })
      return sent
    } else if (/^me\s/i.test(line) && settings.channel === 'world') return session.sendChat(`/${line}`, 'world')
    else if (line) return session.sendCommand(chat.part?.resolve(line) ?? line)
    return true
  }

  /** Counts down the gifts of a block that was placed; a door is one, and its use is none. */
  function countPlaced({ x, y, z, before, block }: PendingEdit): void {
    const { base } = kindOf(block)
    const half = useDoor(block) !== null && world.get(x, y - 1, z) === block
    if (base !== kindOf(before).base && !half) hud.hotbar.countPlaced(base)
  }

  function openPast(): void {
    past.use((part) => part.open())
  }

  function partMissing(): void {
    hud.messages.toast(texts.partMissing)
    if (store.screen === 'blocks' || store.screen === 'menu') void screens.resume()
  }

  /** Loads what the player will open, while the node from which the page came is there. */
  function loadParts(): void {
    const parts = [
      () => import('../hud/menu'),
      () => import('../hud/inventory'),
      () => import('./build-control'),
      () => import('./map-control'),
    ]
    void Promise.allSettled(parts.map((load) => load()))
    void import('./keep-page')
      .then(({ keepPage }) => keepPage((text) => hud.chat.addNotice(text)))
      .catch(() => undefined)
    effects.use((part) => part.applySettings())
    chat.use()
    players.use()
    claims.use((part) => part.update())
    signs.use() // it shows them
  }

  function act(action: Action): void {
    if (action === 'menu') {
      if (build.part?.cancel()) void screens.resume()
      else screens.show('menu')
    } else if (action === 'blocks') screens.show('blocks')
    else if (action === 'chat') screens.show('chat')
    else if (action === 'command') screens.show('chat', '/')
    else if (action === 'give') {
      const many = controls.performs('sink')
      players.use((part) => part.give(many))
    } else if (action === 'fly') movement.toggleFlying()
    else if (action === 'map') void panels.openMap()
    else if (action === 'claims') claims.use((part) => part.toggleFar())
    else if (action === 'inspect') command('inspect')
    else if (action === 'past') openPast()
    else if (action === 'build') build.use((part) => part.openPanel())
    else if (action === 'undo') build.use((part) => part.undo())
    else if (action === 'redo') build.use((part) => part.redo())
    else if (action === 'camera') thirdPerson.use((part) => part.next())
    else if (action === 'wave') wave()
    else if (action === 'mute') {
      settings.sound = !settings.sound
      hud.messages.toast(settings.sound ? texts.soundsOn : texts.soundsOff)
      applySettings()
    } else if (action === 'hints') {
      settings.hints = !settings.hints
      applySettings()
    } else if (action === 'debug') void panels.toggleDebug()
  }

  /** Waves, unless the player still does: who floods the chat is muted. */
  function wave(): void {
    if (performance.now() - wavedAt < WAVE_MS) return
    wavedAt = performance.now()
    session.sendChat(WAVE, 'near')
  }

  function applySettings(): void {
    view.setFieldOfView(settings.fieldOfView)
    view.brightness = settings.brightness
    store.save()
    quality.apply()
    effects.part?.applySettings()
    showHints()
  }

  /** Loads the hints for a newcomer, once. */
  function showHints(): void {
    if (!settings.hints || !store.inWorld) return
    hintsLoading ??= import('./hint-control').then(({ HintControl }) => {
      hints = new HintControl(store, body, input, hudRoot)
      systems.push(hints)
    })
  }

  listenToKeys({ store, input, controls, hud, screens })
  document.addEventListener('visibilitychange', () => quality.restart())
  applySettings()
  hotbar.select(0)
  screens.showTitle(null)
  input.start()
  const systems: System[] = [
    counter,
    devices,
    movement,
    actions,
    claims,
    inspect,
    rollback,
    past,
    signs,
    build,
    quality,
    horizon,
    thirdPerson,
    scene,
    effects,
    panels,
  ]
  new FrameLoop(systems).start()

  const hook: TestHook = {
    state: () => ({
      connected: session.connection.open,
      screen: store.screen,
      world: session.welcome?.world ?? '',
      player: session.welcome?.player ?? '',
      name: session.welcome?.name ?? '',
      gateway: session.welcome?.gateway ?? '',
      x: body.x,
      y: body.y,
      z: body.z,
      yaw: body.yaw,
      pitch: body.pitch,
      flying: body.flying,
      onGround: body.onGround,
      chunksLoaded: world.size,
      chunksMeshed: meshes.meshed,
      meshBacklog: meshes.backlog,
      pendingEdits: session.edits.waiting.length,
      acknowledgedEdits: session.acknowledged,
      bulk: session.bulk,
      hotbarSlot: store.slot,
      hotbar: [...settings.hotbar],
      gifts: settings.hotbar.map((block) => hud.hotbar.giftsLeft(block)),
      aimedPlayer: interaction.target?.player ?? '',
      hitsTaken: players.part?.hitsTaken ?? 0,
      claims: session.claims.list.map(({ owner, name }) => `${owner}/${name}`),
      claim: claims.part?.here ? `${claims.part.here.owner}/${claims.part.here.name}` : '',
      choosing: claims.part?.choosing ?? '',
      inspecting: inspect.part?.on ?? false,
      past: past.part?.state ?? null,
      build: build.part?.state ?? null,
      nearby: (session.surroundings.nearby?.players ?? []).map(({ name }) => name),
      mapTiles: panels.map?.panel.map.land.progress.there ?? rollback.part?.tiles ?? 0,
      others: avatars.list().map(({ player, name, x, y, z }) => ({ player, name, x, y, z })),
      fps: counter.rate,
      ping: session.connection.traffic.ping,
      camera: { mode: thirdPerson.part?.mode ?? 'first', ...scene.camera },
      horizon: horizon.state,
      sounds: effects.part?.heard ?? [],
      bursts: effects.part?.shown ?? 0,
      signs: signs.part?.count ?? 0,
      raining: effects.part?.raining ?? 0,
      drops: effects.part?.drops ?? 0,
      drawCalls: view.stats.calls,
      triangles: view.stats.triangles,
      frames: counter.frames,
    }),
    blockAt: (x, y, z) => world.get(x, y, z),
    lookAt: (x, y, z) => {
      const { yaw, pitch } = anglesOf(x + 0.5 - body.x, y + 0.5 - body.y - EYE, z + 0.5 - body.z)
      movement.look(yaw, pitch)
      interaction.updateAim()
    },
    aim: () => interaction.aim,
  }
  return { play: (choice) => screens.play(choice), bringKey: () => hud.openKeyImport(), hook }
}
