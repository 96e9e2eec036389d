// window.__voxeld: the interface of end-to-end tests to a running client; it is also useful in the console. The state is
// read-only, and the actions do only what a player can do with the mouse.
//
//   state()                 a snapshot, see below
//   blockAt(x, y, z)        the id of the block shown there; 65535 if its chunk is not loaded
//   lookAt(x, y, z)         turns the camera to the middle of that block (no teleport)
//   aim()                   the block aimed at and the face's normal, or null
//   state().aimedPlayer     the id of the player aimed at, or ''

import type { MeshScheduler } from '../mesh/scheduler'
import { EYE } from '../player/body'
import { anglesOf, type Hit } from '../player/ray'
import type { OtherPlayer } from '../render/avatars'
import type { Camera } from '../render/camera'
import type { BuildState } from './build-control'
import type { Effects, HeardSound } from './effects'
import type { FrameCounter } from './frame-loop'
import type { HorizonControl, HorizonState } from './horizon-control'
import type { Lazy } from './lazy'
import type { Movement } from './movement'
import type { Panels } from './panels'
import type { Core, Parts } from './parts'
import type { PastState } from './past-control'
import type { Scene } from './scene'
import type { CameraMode } from './third-person'

export interface TestState {
  connected: boolean
  screen: string
  world: string
  player: string
  name: string
  /** The peer id of the node that serves the session. */
  gateway: string
  x: number
  y: number
  z: number
  yaw: number
  pitch: number
  flying: boolean
  onGround: boolean
  chunksLoaded: number
  chunksMeshed: number
  meshBacklog: number
  pendingEdits: number
  acknowledgedEdits: number
  hotbarSlot: number
  hotbar: number[]
  /** For each slot, the number of blocks received as gifts and not yet placed. */
  gifts: number[]
  aimedPlayer: string
  /** The number of hits by other players. */
  hitsTaken: number
  /** The claims around the player, as owner/name; the one that they are in, or ''; the corner that they choose. */
  claims: string[]
  claim: string
  choosing: '' | 'first' | 'second'
  /** Clicks ask who changed a block. */
  inspecting: boolean
  /** Null until the past was watched first. */
  past: PastState | null
  /** Null until the building tools are loaded. */
  build: BuildState | null
  /** Names in the latest list of players nearby; number of tiles of the map, or of the picture of a rollback. */
  nearby: string[]
  mapTiles: number
  others: OtherPlayer[]
  /** The number of others whose block is drawn. */
  heldBlocks: number
  fps: number
  ping: number
  camera: Camera & { mode: CameraMode }
  /** Land beyond the chunks that are loaded. */
  horizon: HorizonState
  /** The latest sounds, newest last, at most 32. */
  sounds: readonly HeardSound[]
  /** The number of blocks whose particles were shown when they changed. */
  bursts: number
  /** The number of signs whose text is drawn. */
  signs: number
  /** How hard it rains, 0 to 1. */
  raining: number
  /** The number of drops and flakes that are drawn. */
  drops: number
  drawCalls: number
  triangles: number
  frames: number
}

export interface TestHook {
  state(): TestState
  blockAt(x: number, y: number, z: number): number
  lookAt(x: number, y: number, z: number): void
  aim(): Hit | null
}

/** What the hook reads. */
interface Shown extends Pick<
  Core,
  'store' | 'world' | 'body' | 'avatars' | 'session' | 'interaction' | 'hud' | 'view'
> {
  parts: Parts
  movement: Movement
  meshes: MeshScheduler
  panels: Panels
  scene: Scene
  horizon: HorizonControl
  effects: Lazy<Effects>
  counter: FrameCounter
}

export function testHookOf(shown: Shown): TestHook {
  const { store, world, body, avatars, session, interaction, hud, view } = shown
  const { parts, movement, meshes, panels, scene, horizon, effects, counter } = shown
  return {
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
      hotbar: [...store.settings.hotbar],
      gifts: store.settings.hotbar.map((block) => hud.hotbar.giftsLeft(block)),
      aimedPlayer: interaction.target?.player ?? '',
      hitsTaken: parts.players.part?.hitsTaken ?? 0,
      claims: session.claims.list.map(({ owner, name }) => `${owner}/${name}`),
      claim: parts.claims.part?.here ? `${parts.claims.part.here.owner}/${parts.claims.part.here.name}` : '',
      choosing: parts.claims.part?.choosing ?? '',
      inspecting: parts.inspect.part?.on ?? false,
      past: parts.past.part?.state ?? null,
      build: parts.build.part?.state ?? null,
      nearby: (session.surroundings.nearby?.players ?? []).map(({ name }) => name),
      mapTiles: panels.map?.panel.map.land.progress.there ?? parts.rollback.part?.tiles ?? 0,
      others: avatars.list(),
      heldBlocks: parts.stances.part?.held.meshes.length ?? 0,
      fps: counter.rate,
      ping: session.connection.traffic.ping,
      camera: { mode: parts.thirdPerson.part?.mode ?? 'first', ...scene.camera },
      horizon: horizon.state,
      sounds: effects.part?.heard ?? [],
      bursts: effects.part?.shown ?? 0,
      signs: parts.signs.part?.count ?? 0,
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
}

declare global {
  interface Window {
    __voxeld?: TestHook
  }
}

export function installTestHook(hook: TestHook): void {
  window.__voxeld = Object.freeze(hook)
}
