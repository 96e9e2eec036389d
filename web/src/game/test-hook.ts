// window.__voxeld: the interface of end-to-end tests to a running client; it is also useful in the console. The state is
// read-only, and the actions do only what a player can do with the mouse.
//
//   state()                 a snapshot, see below
//   blockAt(x, y, z)        the id of the block shown there; 65535 if its chunk is not loaded
//   lookAt(x, y, z)         turns the camera to the middle of that block (no teleport)
//   aim()                   the block aimed at and the face's normal, or null
//   state().aimedPlayer     the id of the player aimed at, or ''

import type { Hit } from '../player/ray'
import type { BuildState } from './build-control'
import type { HeardSound } from './effects'
import type { Camera } from '../render/camera'
import type { CameraMode } from './third-person'
import type { PastState } from './past-control'

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
  others: { player: string; name: string; x: number; y: number; z: number }[]
  fps: number
  ping: number
  camera: Camera & { mode: CameraMode }
  /** Land beyond the chunks that are loaded. */
  horizon: {
    /** The number of tiles wanted, and of those that are there. */
    wanted: number
    there: number
    /** How far it is shown, in blocks. */
    reach: number
    /** What is built on it: the number of rows of squares, and the height of the highest. */
    built: number
    highest: number
    /** What was drawn of it in the last frame. */
    calls: number
    triangles: number
  }
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

declare global {
  interface Window {
    __voxeld?: TestHook
  }
}

export function installTestHook(hook: TestHook): void {
  window.__voxeld = Object.freeze(hook)
}
