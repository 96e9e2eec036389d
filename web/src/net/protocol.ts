// The session's messages, as docs/protocol.md describes them: one JSON object a text frame, or one CBOR map a binary
// frame, with its name in "type". Tick frames are read in tick.ts.

import { decodeCBOR, encodeCBOR } from './cbor'
import { encodeMove } from './tick'

export const SESSION_VERSION = 2
export const MAX_VIEW = 12
export const MAX_CHAT_BYTES = 256

/** Feet in world blocks. Yaw 0 looks along +Z and grows clockwise seen from above; pitch is positive upwards; radians. */
export interface Pose {
  x: number
  y: number
  z: number
  yaw: number
  pitch: number
}

export type ChunkAddress = [x: number, z: number]

export type FromClient =
  | { type: 'join'; version: number; name: string; view: number; encoding: 'json' | 'cbor'; key?: string }
  | { type: 'prove'; signature: string }
  | ({ type: 'move' } & Pose)
  | { type: 'edit'; seq: number; x: number; y: number; z: number; block: number }
  | { type: 'chat'; text: string }
  | { type: 'hit'; player: string }
  | { type: 'gift'; player: string; block: number; count: number }
  | { type: 'view'; view: number }
  | { type: 'ping'; nonce: number }

export interface Welcome {
  type: 'welcome'
  version: number
  world: string
  world_name: string
  sections: number
  player: string
  name: string
  guest: boolean
  next_seq: number
  pose: Pose
  view: number
  reach: number
  tick_ms: number
  /** Game minutes since midnight, now. */
  time_of_day: number
  /** How long 1440 game minutes last. */
  day_ms: number
  gateway: string
  server_version: string
}

export interface Avatar extends Pose {
  player: string
  name: string
  guest?: boolean
}

export interface AvatarMove extends Pose {
  player: string
}

export interface BlockChange {
  x: number
  y: number
  z: number
  block: number
}

export interface ChatEvent {
  player: string
  name: string
  text: string
}

/** Somebody has hit somebody. */
export interface HitEvent {
  type: 'hit'
  player: string
  name: string
  to: string
  to_name: string
}

/** Somebody has given somebody blocks of a kind. */
export interface GiftEvent {
  type: 'gift'
  player: string
  name: string
  to: string
  to_name: string
  block: number
  count: number
}

/** What happened in one chunk in one tick. */
export interface ChunkDelta {
  chunk: ChunkAddress
  enter?: Avatar[]
  leave?: string[]
  moves?: AvatarMove[]
  blocks?: BlockChange[]
  says?: ChatEvent[]
}

/** Another gateway's addresses: a WebSocket, and a game port for clients over TCP. */
export interface HandoffTarget {
  url: string
  game: string
}

export type FromServer =
  | { type: 'challenge'; nonce: string; world: string }
  | Welcome
  | { type: 'chunk'; chunk: ChunkAddress; data: string | Uint8Array<ArrayBuffer> }
  | { type: 'chunk_gone'; chunk: ChunkAddress }
  | { type: 'frame'; tick: number; chunks: ChunkDelta[] | null }
  | { type: 'ack'; seq: number; block: number; error?: string }
  | HitEvent
  | GiftEvent
  | { type: 'denied'; deed: string; player: string; error: string }
  | ({ type: 'correction'; reason: string } & Pose)
  | { type: 'pong'; nonce: number; time_of_day: number }
  | { type: 'notice'; text: string }
  | { type: 'reconnect'; homes: HandoffTarget[]; reason: string }
  | { type: 'failure'; code: string; message: string }

export function encode(message: FromClient): string {
  return JSON.stringify(message)
}

/** A client's message for a session in CBOR. */
export function encodeBinary(message: FromClient): Uint8Array<ArrayBuffer> {
  if (message.type === 'move') return encodeMove(message.x, message.y, message.z, message.yaw, message.pitch)
  return encodeCBOR(message)
}

/** Reads a server's message in CBOR, as decode reads one in JSON. */
export function decodeBinary(bytes: Uint8Array<ArrayBuffer>): FromServer | null {
  return known(decodeCBOR(bytes))
}

/** Reads a server's message. Throws if it is none; a type that this client does not know comes back as null. */
export function decode(text: string): FromServer | null {
  return known(JSON.parse(text))
}

function known(message: unknown): FromServer | null {
  if (typeof message !== 'object' || message === null || typeof (message as { type?: unknown }).type !== 'string') {
    throw new Error('read message: no object with a type')
  }
  return KNOWN.has((message as { type: string }).type) ? (message as FromServer) : null
}

const KNOWN = new Set<string>([
  'challenge',
  'welcome',
  'chunk',
  'chunk_gone',
  'frame',
  'hit',
  'gift',
  'denied',
  'ack',
  'correction',
  'pong',
  'notice',
  'reconnect',
  'failure',
] satisfies FromServer['type'][])

/** What a player signs to prove a key (player.ProofText). */
export function proofText(nonce: string, world: string): string {
  return `voxeld session 1\n${world}\n${nonce}`
}

/** The rule for names: 1 to 20 of ASCII letters, digits, _ and -. */
export function isName(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,20}$/.test(name)
}

/** Shortens a chat line to what the protocol carries, without cutting a character in two. */
export function clipChat(text: string): string {
  const encoder = new TextEncoder()
  let clipped = text.trim()
  while (encoder.encode(clipped).length > MAX_CHAT_BYTES) clipped = Array.from(clipped).slice(0, -1).join('')
  return clipped
}
