// The binary encoding of tick frames (docs/protocol.md). Frames refer to avatars by short indices, and update an avatar only
// when it is not where its velocity predicts. AvatarDecoder keeps the state of all avatars and turns each frame into the
// deltas that a session in JSON receives.

import { Predictor, type GlideRange, type Position } from '../motion/predictor'
import type { Avatar, AvatarMove, BlockChange, ChunkAddress, ChunkDelta, ChatEvent } from './protocol'

export const TICK_FRAME = 0x01

const CELL = 8
const CHUNK = 32
const CELL_ROW = CHUNK / CELL
const POSITION_UNIT = 32
const VELOCITY_UNIT = 128
const CLIMB_UNIT = 64
const MIN_Y = -64
const HEIGHT_STEP = 4 * POSITION_UNIT
/** A frame that comes more ticks after its time is late. */
const LATE_TICKS = 1.5
/** The corrections that an avatar glides to: what was predicted while a frame was late; otherwise what would be seen as a jump. */
const LATE_GLIDE: GlideRange = { least: 0, most: 12 }
const GLIDE: GlideRange = { least: 0.5, most: 3 }
/** How far a late frame moves the clock of the ticks, as a share of how late it is. */
const LATE_GAIN = 0.01

/** An avatar's state as of the last frame that updated it. */
interface DecodedAvatar {
  player: string
  chunk: ChunkAddress // the one that the player entered last; older motion, in the chunk before, may still come, and is ignored
  motion: Predictor // in ticks unwrapped beyond 16 bits
  yaw: number
  pitch: number
}

export interface TickFrame {
  type: 'frame'
  tick: number
  chunks: ChunkDelta[]
}

export class AvatarDecoder {
  private avatars = new Map<number, DecodedAvatar>()
  private tick = 0 // of the newest frame
  /** When tick 0 would have arrived, in ms, by the frames that arrived earliest: after a lost packet several arrive late, and at once. */
  private begunAt = Infinity
  private extrapolatedAt = 0 // ms
  private updated = new Set<DecodedAvatar>() // by the frame being decoded
  private left = new Map<string, DecodedAvatar>() // in the frame being decoded, by player

  constructor(private readonly tickMS: number) {}

  /** Decodes a frame that was received at now, in ms. Throws if it is malformed. */
  decode(bytes: Uint8Array, now: number): TickFrame {
    const reader = new Bytes(bytes)
    if (reader.u8() !== TICK_FRAME) throw new Error('read frame: not a tick frame')
    this.updated.clear()
    this.left.clear()
    this.setTick(reader.u16(), now)
    const frame: TickFrame = { type: 'frame', tick: this.tick, chunks: [] }
    let chunk: ChunkAddress | null = null
    while (!reader.done) {
      const head = reader.u8()
      if (head & 0x80) {
        if (!chunk) throw new Error('read frame: motion without a chunk')
        this.motion(reader, chunk, head & 0x7f, this.timeAt(now))
      } else if (head === 0x21) {
        this.setTick(reader.u16(), now)
      } else if (head === 0x20) {
        chunk = reader.chunk()
      } else if (head > 0 && head < 0x10) {
        frame.chunks.push(this.chunkDelta(reader, head, this.timeAt(now)))
      } else {
        throw new Error(`read frame: unknown part ${head}`)
      }
    }
    frame.tick = this.tick
    frame.chunks.push(...this.moves(now))
    this.updated.clear()
    return frame
  }

  /** Sets the tick from its low 16 bits and the clock, and adjusts the clock. There may have been no frame for hours: nothing has moved. */
  private setTick(low: number, now: number): void {
    const expected = this.begunAt < Infinity ? Math.round(this.timeAt(now)) : 0
    this.tick = expected + ((low - expected + 0x18000) & 0xffff) - 0x8000
    const begunAt = now - this.tick * this.tickMS
    this.begunAt = begunAt < this.begunAt ? begunAt : this.begunAt + (begunAt - this.begunAt) * LATE_GAIN
  }

  /** Returns the time at now, in ms, in ticks. */
  private timeAt(now: number): number {
    return (now - this.begunAt) / this.tickMS
  }

  /** Returns the extrapolated positions of moving avatars, once per tick; otherwise nothing. */
  extrapolate(now: number): ChunkDelta[] {
    return now - this.extrapolatedAt < this.tickMS ? [] : this.moves(now)
  }

  /** Removes the avatars of an unloaded chunk. */
  removeChunk(chunk: ChunkAddress): void {
    for (const [index, avatar] of this.avatars) if (sameChunk(avatar.chunk, chunk)) this.avatars.delete(index)
  }

  /** Returns the avatars that were updated, and those that have moved since they were returned. */
  private moves(now: number): ChunkDelta[] {
    const time = this.timeAt(now)
    const before = this.timeAt(this.extrapolatedAt)
    const deltas = new Map<string, { chunk: ChunkAddress; moves: AvatarMove[] }>()
    for (const avatar of this.avatars.values()) {
      if (!this.updated.has(avatar) && !avatar.motion.isMoving(before)) continue
      const key = avatar.chunk.join()
      let delta = deltas.get(key)
      if (!delta) deltas.set(key, (delta = { chunk: avatar.chunk, moves: [] }))
      const { player, yaw, pitch } = avatar
      delta.moves.push({ player, ...avatar.motion.at(time), yaw, pitch })
    }
    this.extrapolatedAt = now
    return [...deltas.values()]
  }

  private chunkDelta(reader: Bytes, head: number, time: number): ChunkDelta {
    const chunk = reader.chunk()
    const delta: ChunkDelta = { chunk }
    if (head & 1) delta.enter = reader.list(28, () => this.enter(reader, chunk, time))
    if (head & 2) delta.leave = reader.list(1, () => this.leave(reader.varint(), chunk)).filter((id) => id !== '')
    if (head & 4) delta.blocks = reader.list(4, () => reader.block(chunk))
    if (head & 8) delta.says = reader.list(20, () => reader.chat())
    return delta
  }

  /** Reads an avatar that enters. One that was in view until now glides from where it was predicted. */
  private enter(reader: Bytes, chunk: ChunkAddress, time: number): Avatar {
    const index = reader.varint()
    const player = reader.id()
    const length = reader.u8()
    const name = reader.text(length & 0x1f)
    const skin = length & 0x40 ? { skin: reader.u16() + reader.u16() * 0x10000 } : {}
    const stance = length & 0x20 ? { stance: { held: reader.u16(), sneaks: (reader.u8() & 1) === 1 } } : {}
    const x = chunk[0] * CHUNK + reader.u16() / POSITION_UNIT
    const y = reader.u16() / POSITION_UNIT + MIN_Y
    const z = chunk[1] * CHUNK + reader.u16() / POSITION_UNIT
    const yaw = yawOf(reader.u8())
    const pitch = pitchOf(reader.i8())
    const motion = new Predictor(x, y, z, this.tick)
    const indexed = this.avatars.get(index)
    const before = indexed?.player === player ? indexed : this.left.get(player)
    if (before) this.glide(motion, before.motion.at(time), time)
    this.avatars.set(index, { player, chunk, motion, yaw, pitch })
    const guest = length & 0x80 ? { guest: true } : {}
    return { player, name, ...guest, ...skin, ...stance, ...motion.at(time), yaw, pitch }
  }

  /** After an update, has an avatar glide from where it was shown at a time. */
  private glide(motion: Predictor, shown: Position, time: number): void {
    motion.glideFrom(shown, time, time - this.tick > LATE_TICKS ? LATE_GLIDE : GLIDE)
  }

  private leave(index: number, chunk: ChunkAddress): string {
    const avatar = this.avatars.get(index)
    if (!avatar) return ''
    if (sameChunk(avatar.chunk, chunk)) {
      this.avatars.delete(index)
      this.left.set(avatar.player, avatar)
    }
    return avatar.player
  }

  private motion(reader: Bytes, chunk: ChunkAddress, cell: number, time: number): void {
    if (cell >= CELL_ROW * CELL_ROW) throw new Error(`read frame: no cell ${cell}`)
    const cornerX = chunk[0] * CHUNK + (cell % CELL_ROW) * CELL
    const cornerZ = chunk[1] * CHUNK + Math.floor(cell / CELL_ROW) * CELL
    let count = reader.u8()
    const base = reader.u8() * HEIGHT_STEP
    for (let index = -1; count > 0; count--) {
      const head = reader.u8()
      const gap = head & 7
      index += 1 + gap + (gap === 7 ? reader.varint() : 0)
      const known = this.avatars.get(index)
      const avatar = known && sameChunk(known.chunk, chunk) ? known : unknownAvatar()
      const before = avatar.motion.at(time)
      if (head & 0x08) {
        const x = cornerX + reader.u8() / POSITION_UNIT
        avatar.motion.setPlace(x, cornerZ + reader.u8() / POSITION_UNIT, this.tick)
      }
      const height = head & 0x30 // 0x10: y; 0x20: y and climb; 0x30: 16-bit y and climb
      if (height) {
        const y = (height === 0x30 ? reader.u16() : base + reader.u8()) / POSITION_UNIT + MIN_Y
        avatar.motion.setHeight(y, height === 0x10 ? 0 : reader.i8() / CLIMB_UNIT, this.tick)
      }
      if (head & 0x40) {
        const x = reader.i8() / VELOCITY_UNIT
        avatar.motion.setVelocity(x, reader.i8() / VELOCITY_UNIT)
      }
      if (head & 0x80) {
        avatar.yaw = yawOf(reader.u8())
        avatar.pitch = pitchOf(reader.i8())
      }
      this.glide(avatar.motion, before, time)
      this.updated.add(avatar)
    }
  }
}

/** Returns a placeholder for updates of an avatar that has not entered the chunk. */
function unknownAvatar(): DecodedAvatar {
  return { player: '', chunk: [0, 0], motion: new Predictor(0, 0, 0, 0), yaw: 0, pitch: 0 }
}

function sameChunk(a: ChunkAddress, b: ChunkAddress): boolean {
  return a[0] === b[0] && a[1] === b[1]
}

function yawOf(units: number): number {
  return (units / 256) * 2 * Math.PI
}

function pitchOf(units: number): number {
  return ((units / 127) * Math.PI) / 2
}

/** Reads a frame's fields in order. */
class Bytes {
  private at = 0
  private readonly view: DataView

  constructor(private readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get done(): boolean {
    return this.at >= this.bytes.length
  }

  u8(): number {
    return this.view.getUint8(this.at++)
  }

  i8(): number {
    return this.view.getInt8(this.at++)
  }

  u16(): number {
    this.at += 2
    return this.view.getUint16(this.at - 2, true)
  }

  varint(): number {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = this.u8()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      if (scale > 2 ** 28) throw new Error('read frame: a number is too large')
    }
  }

  chunk(): ChunkAddress {
    return [this.zigzag(), this.zigzag()]
  }

  private zigzag(): number {
    const n = this.varint()
    return n % 2 === 0 ? n / 2 : -(n + 1) / 2
  }

  id(): string {
    let id = ''
    for (let i = 0; i < 16; i++) id += this.u8().toString(16).padStart(2, '0')
    return id
  }

  text(length: number): string {
    if (this.at + length > this.bytes.length) throw new Error('read frame: truncated')
    this.at += length
    return new TextDecoder().decode(this.bytes.subarray(this.at - length, this.at))
  }

  /** Reads a list whose elements have at least minBytes bytes each. */
  list<T>(minBytes: number, one: () => T): T[] {
    const count = this.varint()
    if (count * minBytes > this.bytes.length - this.at) throw new Error('read frame: a list is truncated')
    return Array.from({ length: count }, one)
  }

  block(chunk: ChunkAddress): BlockChange {
    const index = this.u8() + 256 * this.u8() + 65536 * this.u8()
    return {
      x: chunk[0] * CHUNK + (index % CHUNK),
      y: Math.floor(index / (CHUNK * CHUNK)),
      z: chunk[1] * CHUNK + (Math.floor(index / CHUNK) % CHUNK),
      block: this.varint(),
    }
  }

  chat(): ChatEvent {
    const player = this.id()
    const name = this.text(this.u8())
    return { player, name, text: this.text(this.varint()) }
  }
}
