// window.__voxeld: what the end-to-end tests (and the curious, in the console) see of a running client. State is
// read-only; the few actions do nothing that a player could not do with the mouse.
//
//   state()                 a snapshot, see below
//   blockAt(x, y, z)        id of the block shown there; 65535 if its chunk is not loaded
//   lookAt(x, y, z)         turns the eyes to the middle of that block (no teleport)
//   aim()                   the block aimed at and the face's normal, or null
//   state().aimedPlayer     id of the player aimed at, or ''

import type { Hit } from './player/ray'

export interface TestState {
  connected: boolean
  screen: string
  world: string
  player: string
  name: string
  /** Peer id of the node that serves the session. */
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
  /** How many blocks on each place were given and are not yet placed. */
  gifts: number[]
  aimedPlayer: string
  /** Blows that were felt. */
  blows: number
  others: { player: string; name: string; x: number; y: number; z: number }[]
  fps: number
  ping: number
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
