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
import { Body, bodyTouchesBlock } from '../player/body'
import { Avatars } from '../render/avatars'
import { setOwnSkin } from '../render/figure'
import { View } from '../render/view'
import type { Settings } from '../settings/settings'
import { storage } from '../settings/storage'
import { texts } from '../text/texts'
import { isDoor, kindOf } from '../world/blocks'
import type { PendingEdit } from '../world/edits'
import { World } from '../world/world'
import { Actions, WAVE } from './actions'
import { Devices } from './devices'
import { FrameCounter, FrameLoop, type System } from './frame-loop'
import type { HintControl } from './hint-control'
import { HorizonControl, ShownChunks } from './horizon-control'
import { HotbarControl } from './hotbar-control'
import { listenToKeys } from './keyboard'
import { LazySystem } from './lazy'
import { Movement } from './movement'
import { Panels } from './panels'
import { createParts } from './parts'
import { QualityControl } from './quality-control'
import { Scene } from './scene'
import { Screens } from './screens'
import { Store } from './store'
import { testHookOf, type TestHook } from './test-hook'

export interface Game {
  play(choice: JoinChoice): void
  /** Opens the dialog that takes over the key of another device. */
  bringKey(): void
  hook: TestHook
}

/** Starts the client on a canvas; url is the WebSocket of the page's own node. */
export function startGame(
  canvas: HTMLCanvasElement,
  hudRoot: HTMLElement,
  title: Title,
  url: string,
  settings: Settings,
): Game {
  let hints: HintControl | null = null // loaded for newcomers
  let hintsLoading: Promise<void> | null = null
  const store = new Store(settings, storage)
  const world = new World()
  const body = new Body()
  const avatars = new Avatars(world)
  const view = new View(canvas, settings.smoothEdges)
  view.add(avatars.meshes)
  view.addAid(avatars.names)
  const shown = new ShownChunks(view.terrain)
  const meshes = new MeshScheduler(world, shown, () => hud.messages.toast(texts.landMissing))
  view.onContextLost(
    () => hud.messages.setBanner(texts.graphicsLost, 'graphics'),
    () => {
      hud.messages.setBanner(null, 'graphics')
      meshes.remeshAll()
    },
  )
  view.onRefusal(() => hud.messages.toast(texts.graphicsRefused))

  const hud: Hud = new Hud(hudRoot, title, settings, {
    partMissing,
    resume: () => void screens.resume(),
    chatClosed: () => {
      if (store.screen === 'chat') void screens.resume() // a command may have opened another one
    },
    leave: () => screens.showTitle(null),
    unsaved: () => session.edits.waiting.length,
    selectSlot: (slot) => hotbar.select(slot),
    putBlock: (block, slot = store.slot) => {
      hotbar.put(slot, block)
      store.save()
    },
    chat: (text) => {
      if (text.startsWith('/')) return actions.command(text.slice(1).trim())
      const sent = session.sendChat(text, settings.channel)
      if (sent) hints?.tick('chat')
      return sent
    },
    settingsChanged: () => applySettings(),
    perform: (action) => {
      void screens.resume()
      actions.act(action)
    },
    player: () => session.welcome?.player ?? '',
    skinChosen: (skin) => {
      settings.skin = skin
      store.save()
      parts.thirdPerson.part?.dress()
      session.connection.setSkin(skin)
    },
    shared: () => sharedPage(location.href, session.advertised),
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
          parts.build.part?.reset()
          loadParts()
        }
        screens.joined(welcome, first, moved)
        parts.past.part?.joined()
        showHints()
        const { textures = settings.worldPack } = welcome
        if (settings.worldTextures && textures !== settings.worldPack)
          void import('./world-textures').then(
            ({ keepWorldTextures }) => keepWorldTextures(textures, session.connection.url, store, hud.messages),
            partMissing,
          )
      },
      disconnected: (reason) => screens.disconnected(reason),
      refused: (reason) => screens.showTitle(reason),
      toast: (text) => hud.messages.toast(text),
      chat: (event) => {
        parts.chat.use((part) => part.showNearby(event))
        if (event.text === WAVE) avatars.wave(event.player)
      },
      line: (line) => parts.chat.use((part) => part.showFar(line)),
      hit: (event) => {
        parts.players.use((part) => part.showHit(event))
        effects.part?.interacted('hit', event.to)
      },
      gift: (event) => {
        parts.players.use((part) => part.showGift(event))
        effects.part?.interacted('gift', event.to)
      },
      committed: (edit) => {
        if (!edit.changes) countPlaced(edit)
        parts.build.use((part) => part.committed(edit))
      },
      rejected: (edit, error, again) => {
        if (!parts.build.part?.rejected(edit, error, again) && !again) hud.messages.toast(refusalMessage(error))
      },
      notice: (text) => hud.chat.addNotice(text),
      permissions: ({ commands }) => {
        hud.chat.commands = [...commands, { name: 'ignore', group: 'talk', usage: 'NAME', help: texts.ignoreHelp }]
        visit()
      },
      rollback: (preview) => parts.rollback.use((part) => part.propose(preview)),
      history: (page) => parts.past.part?.answer(page),
    },
    new ChunkCache(indexedDBStorage()),
  )
  const input = new InputSwitch((kind) => devices.use(kind))
  const controls = new Controls(canvas, input, () => settings.bindings, {
    acted: (action) => actions.act(action),
    slotChosen: (slot) => hotbar.select(slot),
    jumpPressedTwice: () => movement.toggleFlying(),
    clicked: (button) => {
      const now = performance.now()
      if (actions.click(button, now)) interaction.rest()
      else interaction.press(button, now)
    },
    turned: (x, y) => movement.turn(x, y),
    pointerReleased: () => (document.hasFocus() ? actions.act('menu') : screens.show('menu')),
  })
  const interaction: BlockInteraction = new BlockInteraction(world, body, {
    edit: (x, y, z, block, follows) =>
      actions.mayEdit(x, y, z) && session.edit(x, y, z, block, performance.now(), '', follows),
    selectedBlock: () => store.selectedBlock,
    pick: (block) => hotbar.pick(block),
    mayBuild: (x, y, z) => session.claims.mayBuild(x, y, z),
    anyoneTouches: (x, y, z, block) => avatars.anyTouches((feet) => bodyTouchesBlock(feet, x, y, z, block)),
    castPlayers: (origin, dir, reach) => avatars.castRay(origin, dir, reach),
    hit: (target) => session.sendHit(target.player),
    broke: () => hints?.tick('break'),
    placed: () => hints?.tick('place'),
    swing: () => view.hand.swing(),
    write: (x, y, z) => {
      if (actions.mayEdit(x, y, z)) parts.signs.use((part) => part.open(x, y, z))
    },
  })

  const hotbar = new HotbarControl(store, hud.hotbar, view.hand)
  const quality = new QualityControl(store, session, meshes, view, hud)
  const screens = new Screens(store, world, body, session, controls, view, hud, quality)
  const parts = createParts({
    store,
    world,
    body,
    avatars,
    session,
    interaction,
    hotbar,
    screens,
    hud,
    hudRoot,
    view,
    turn: (x, y) => movement.turn(x, y),
    partMissing,
  })
  const movement = new Movement(
    store,
    world,
    body,
    controls,
    hud.messages,
    (from, to) => parts.claims.part?.keepsOut(from, to) ?? false,
  )
  const acting: System = {
    update({ now }) {
      view.setFieldOfView(settings.fieldOfView / movement.zoom)
      if (!store.inWorld) return
      session.sendPose(now)
      session.extrapolate(now)
      interaction.update(now, (button) => store.screen === 'play' && !actions.choosing && controls.holds(button))
    },
  }
  const horizon = new HorizonControl(store, body, session, meshes, shown, view)
  const scene = new Scene(store, world, body, interaction, session.clock, avatars, meshes, view, parts.thirdPerson)
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

  const actions = new Actions(
    { store, session, hotbar, screens, hud, controls, movement, panels, settingsChanged: applySettings, partMissing },
    parts,
  )
  const devices = new Devices({
    canvas,
    store,
    input,
    controls,
    screens,
    interaction,
    hud,
    buttons: () => (actions.choosing || interaction.target ? [LEFT, RIGHT] : [RIGHT, LEFT]),
    partMissing,
  })

  /** Goes to the place of the page's link, once. */
  function visit(): void {
    const place = placeIn(location.hash)
    if (!place || !session.mayUse('visit')) return
    session.sendCommand(`visit ${place.join(' ')}`)
    history.replaceState(null, '', location.pathname + location.search) // a reload keeps the player where they are
  }

  /** Counts down the gifts of a block that was placed; a door is one, and its use is none. */
  function countPlaced({ x, y, z, before, block }: PendingEdit): void {
    const { base } = kindOf(block)
    const half = isDoor(block) && world.get(x, y - 1, z) === block
    if (base !== kindOf(before).base && !half) hud.hotbar.countPlaced(base)
  }

  function partMissing(): void {
    hud.messages.toast(texts.partMissing)
    if (store.screen === 'blocks' || store.screen === 'menu' || store.screen === 'radial') void screens.resume()
  }

  /** Loads what the player will open, while the node from which the page came is there. */
  function loadParts(): void {
    void Promise.allSettled([
      import('../hud/menu'),
      import('../hud/inventory'),
      import('./build-control'),
      import('./map-control'),
    ])
    void import('./keep-page')
      .then(({ keepPage }) => keepPage((text) => hud.chat.addNotice(text)))
      .catch(() => undefined)
    effects.use((part) => part.applySettings())
    parts.chat.use()
    parts.players.use()
    parts.claims.use((part) => part.update())
    parts.signs.use() // it shows them
    parts.stances.use()
  }

  function applySettings(): void {
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
  window.addEventListener('beforeunload', (event) => {
    if (session.edits.waiting.length > 0) event.preventDefault() // the browser asks whether the player wants to lose them
  })
  applySettings()
  hotbar.select(0)
  screens.showTitle(null)
  input.start()
  const systems: System[] = [
    counter,
    devices,
    movement,
    acting,
    parts.claims,
    parts.inspect,
    parts.rollback,
    parts.past,
    parts.signs,
    parts.stances,
    parts.build,
    quality,
    horizon,
    parts.thirdPerson,
    scene,
    effects,
    panels,
  ]
  new FrameLoop(systems).start()

  const hook = testHookOf({
    store,
    world,
    body,
    avatars,
    session,
    interaction,
    hud,
    view,
    parts,
    movement,
    meshes,
    panels,
    scene,
    horizon,
    effects,
    counter,
  })

  return { play: (choice) => screens.play(choice), bringKey: () => hud.openKeyImport(), hook }
}
