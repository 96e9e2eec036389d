// The messages of a session (docs/protocol.md): one JSON object per text frame, or one CBOR map per binary frame. The field
// "type" names the message. Tick frames are decoded in tick.ts.

import type { Pose } from '../motion/pose'
import type { Box, Claim } from '../world/claims'
import type { Notice } from '../text/notices'
import type { Sign } from '../world/signs'
import { decodeCBOR, encodeCBOR } from './cbor'

export const SESSION_VERSION = 2
/** The first byte of a move in a session in CBOR. */
export const CLIENT_MOVE = 0x02
export const MAX_VIEW = 12
export const MAX_CHAT_BYTES = 256

export type ChunkAddress = [x: number, z: number]

export type FromClient =
  | { type: 'join'; version: number; name: string; view: number; encoding: 'json' | 'cbor'; key?: string }
  | { type: 'prove'; signature: string }
  | ({ type: 'move' } & Pose)
  | { type: 'edit'; seq: number; x: number; y: number; z: number; block: number; signature?: string; text?: string }
  | { type: 'bulk'; seq: number; x: number; z: number; runs: string; signature?: string }
  | { type: 'chat'; text: string }
  | { type: 'command'; text: string; seq?: number; signature?: string }
  | { type: 'hit'; player: string }
  | { type: 'gift'; player: string; block: number; count: number }
  | { type: 'view'; view: number }
  | { type: 'stance'; held: number; sneaks: boolean }
  | { type: 'ping'; nonce: number }
  | { type: 'nearby' }
  | { type: 'people' }
  | { type: 'chunk'; x: number; z: number }

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
  /** The duration of 1440 game minutes. */
  day_ms: number
  gateway: string
  /** The address that others open to reach the gateway's page. */
  url?: string
  server_version: string
  /** The gateway answers `nearby`, and has surface tiles. */
  map?: boolean
  /** The gateway takes `stance`. */
  stances?: boolean
  /** The world's texture pack is at textures/ and this; '' for none. Older gateways do not send it. */
  textures?: string
  /** The gateway answers `people`. */
  people?: boolean
  /** Players with a key sign their edits. */
  signed?: boolean
}

/** What the player may do. */
export interface Permissions {
  type: 'standing'
  role: string
  /** The name that is registered to the player's key, or empty. */
  name: string
  commands: CommandHelp[]
  /** How many blocks they may change at once by bulk edits; none if it is missing. */
  bulk?: number
}

/** Why the server ended the session. */
export interface Failure {
  type: 'failure'
  code: string
  message: string
  /** Says more than the code. */
  notice?: Notice
}

export interface CommandHelp {
  name: string
  group?: string
  /** Its arguments. */
  usage?: string
  help: string
}

/** The claims around the player. */
export interface ClaimList {
  type: 'claims'
  claims: Claim[] | null
}

/** What a rollback would change, and in which box, in answer to the command of that name. */
export interface RollbackPreview extends Box {
  type: 'rollback'
  /** Orders it. */
  command: string
  /** Whose changes it undoes: a name, an id, or * for everybody. */
  of: string
  /** The number of blocks that it would change. */
  blocks: number
  /** The columns of blocks that it would change; at most MAX_PREVIEW_CHUNKS, so some may be missing. */
  columns?: PreviewChunk[]
}

/** Columns of a chunk: bit z·32 + x, the lowest bit of a byte first. */
export interface PreviewChunk {
  x: number
  z: number
  bits: string | Uint8Array<ArrayBuffer>
}

export const MAX_PREVIEW_CHUNKS = 1024

/** Who changed blocks of a box, newest first, in answer to the command inspect with two corners. */
export interface HistoryPage extends Box {
  type: 'history'
  /** As in the command: no change is later (ms since 1970; 0: no limit), and so many of the newest are left out. */
  until: number
  skip: number
  names: string[] | null
  /** Seven numbers for each change: time (ms since 1970), index in names, x, y, z, block before, block after. */
  changes: number[] | null
  /** There are older changes. */
  more?: boolean
  /** A part of the box did not answer. */
  missing?: boolean
}

/** The players in the land around this one, in view or not. */
export interface NearbyList {
  type: 'nearby'
  players: { player: string; name: string; guest?: boolean; x: number; y: number; z: number }[] | null
  complete: boolean
}

/** Who plays in the world, on any node: some of the names, and how many players there are. */
export interface PeopleList {
  type: 'people'
  names: string[] | null
  players: number
}

export interface Avatar extends Pose {
  player: string
  name: string
  guest?: boolean
  /** Absent if the player has chosen none. */
  skin?: number
  /** Absent if they hold nothing and stand. */
  stance?: Stance
}

/** What others see of a player besides where they are. */
export interface Stance {
  /** The block in their hand, which may be one that only newer clients have. */
  held: number
  sneaks: boolean
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

/** A line of chat that is not of the land around. The name is of who sent it or, of the channel "to", to whom it was sent. */
export interface Line {
  type: 'line'
  channel: 'world' | 'from' | 'to'
  player?: string
  name: string
  text: string
  /** When a line to the world was sent, in ms since 1970. With the player it names the line. */
  at?: number
  /** It was sent before the player came. */
  earlier?: boolean
}

/** One player hit another. */
export interface HitEvent {
  type: 'hit'
  player: string
  name: string
  to: string
  to_name: string
}

/** One player gave another blocks of one kind. */
export interface GiftEvent {
  type: 'gift'
  player: string
  name: string
  to: string
  to_name: string
  block: number
  count: number
}

/** The changes in one chunk in one tick. */
export interface ChunkDelta {
  chunk: ChunkAddress
  enter?: Avatar[]
  leave?: string[]
  moves?: AvatarMove[]
  blocks?: BlockChange[]
  says?: ChatEvent[]
}

/** The addresses of another gateway: its WebSocket, and its game port for TCP clients. */
interface HandoffTarget {
  url: string
  game: string
}

export type FromServer =
  | { type: 'challenge'; nonce: string; world: string }
  | Welcome
  | { type: 'chunk'; chunk: ChunkAddress; data: string | Uint8Array<ArrayBuffer> }
  | { type: 'chunk_hash'; chunk: ChunkAddress; hash: string | Uint8Array<ArrayBuffer> }
  | { type: 'chunk_gone'; chunk: ChunkAddress }
  | { type: 'signs'; signs: Sign[] }
  | { type: 'frame'; tick: number; chunks: ChunkDelta[] | null }
  | { type: 'ack'; seq: number; block: number; error?: string }
  | HitEvent
  | GiftEvent
  | { type: 'denied'; deed: string; player: string; error: string }
  | ({ type: 'correction'; reason: string } & Pose)
  | { type: 'pong'; nonce: number; time_of_day: number }
  | Line
  | ({ type: 'notice' } & Notice)
  | Permissions
  | ClaimList
  | RollbackPreview
  | HistoryPage
  | NearbyList
  | PeopleList
  | { type: 'reconnect'; homes: HandoffTarget[]; reason: string; code?: string }
  | Failure

export function encode(message: FromClient): string {
  return JSON.stringify(message)
}

/** Encodes a message for a session in CBOR. */
export function encodeBinary(message: FromClient): Uint8Array<ArrayBuffer> {
  if (message.type === 'move') return encodeMove(message)
  return encodeCBOR(message)
}

/** Encodes the player's own move: type, x, y, z as f64, yaw, pitch as f32, little-endian. */
function encodeMove({ x, y, z, yaw, pitch }: Pose): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(33)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, CLIENT_MOVE)
  view.setFloat64(1, x, true)
  view.setFloat64(9, y, true)
  view.setFloat64(17, z, true)
  view.setFloat32(25, yaw, true)
  view.setFloat32(29, pitch, true)
  return bytes
}

/** Decodes a message from the server in CBOR, as decode does for JSON. */
export function decodeBinary(bytes: Uint8Array<ArrayBuffer>): FromServer | null {
  return known(decodeCBOR(bytes))
}

/** Decodes a message from the server. Returns null for an unknown type; throws if the text is not a message. */
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
  'chunk_hash',
  'chunk_gone',
  'signs',
  'frame',
  'hit',
  'gift',
  'denied',
  'ack',
  'correction',
  'pong',
  'notice',
  'line',
  'standing',
  'claims',
  'rollback',
  'history',
  'nearby',
  'people',
  'reconnect',
  'failure',
] satisfies FromServer['type'][])

/** Returns the text that a player signs to prove their key (player.ProofText). */
export function proofText(nonce: string, world: string): string {
  return `voxeld session 1\n${world}\n${nonce}`
}

/** Returns the text that a player signs to have a command carried out (policy.SignedText). */
export function commandText(world: string, seq: number, name: string, text: string): string {
  return `voxeld command 1\n${world}\n${seq}\n${name}\n${text}`
}

/** Returns the text that a player signs to change a block (player.EditText); sign: the text of a sign. */
export function editText(
  world: string,
  seq: number,
  x: number,
  y: number,
  z: number,
  block: number,
  sign: string,
): string {
  const lines = [world, seq, x, y, z, block]
  return (sign ? ['voxeld edit 2', ...lines, sign] : ['voxeld edit 1', ...lines]).join('\n')
}

/** Returns the text that a player signs to make a bulk edit in a chunk (player.BulkText). */
export function bulkText(world: string, seq: number, x: number, z: number, runs: string): string {
  return ['voxeld bulk edit 1', world, seq, x, z, runs].join('\n')
}

/** Reports whether a name is valid: 1 to 20 ASCII letters, digits, _ and -. */
export function isName(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,20}$/.test(name)
}

/** Returns a text without what the server refuses: control and format characters, and line separators. */
export function visibleText(text: string): string {
  return text.replace(/[^\P{C}\u200d]|[\p{Zl}\p{Zp}]/gu, '')
}

/** Begins the command that sends a line to all players of the world. */
export const WORLD_COMMAND = 'world '

/** A line that begins with this is about what its author does. */
export const EMOTE = '/me '

/**
 * Returns a text as a valid chat line, trimmed to the protocol's limit without splitting a character; empty if nothing can be seen. Any
 * channel takes it.
 */
export function clipChat(text: string): string {
  return clipText(visibleText(text).trim(), MAX_CHAT_BYTES - WORLD_COMMAND.length)
}

/** Returns as much of a text as has so many bytes of UTF-8, without splitting a character. */
export function clipText(text: string, bytes: number): string {
  const encoder = new TextEncoder()
  while (encoder.encode(text).length > bytes) text = Array.from(text).slice(0, -1).join('')
  return text
}
