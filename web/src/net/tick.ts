// Tick frames: what happened in one tick, in bytes (docs/protocol.md). They name avatars by short indices, and tell of
// one only when it is not where its pace has taken it; AvatarDecoder knows what the frames have said, and turns each into the
// pieces that a session in JSON would get.

import type { Avatar, AvatarMove, BlockChange, ChunkAddress, ChunkDelta, ChatEvent } from './protocol'

export const TICK_FRAME = 0x01
export const CLIENT_MOVE = 0x02

const CELL = 8
const CHUNK = 32
const CELL_ROW = CHUNK / CELL
const PLACE_UNIT = 32
const PACE_UNIT = 128
const CLIMB_UNIT = 64
const PACE_TICKS = 40
const LOWEST = -64
const STOREY = 4 * PLACE_UNIT

/** An avatar as the frames have told of it. */
interface DecodedAvatar {
  player: string
  chunk: ChunkAddress
  x: number // at the tick, in blocks
  y: number // at the tick tall
  z: number
  yaw: number
  pitch: number
  paceX: number // blocks a tick
  paceZ: number
  climb: number // likewise
  tick: number // counted on beyond 16 bits
  tall: number // likewise
}

export interface TickFrame {
  type: 'frame'
  tick: number
  chunks: ChunkDelta[]
}

export class AvatarDecoder {
  private actors = new Map<number, DecodedAvatar>()
  private tick = 0 // of the newest frame
  private at = 0 // when it came, ms
  private shown = 0 // when drift was told last
  private touched = new Set<DecodedAvatar>() // by the frame that is read

  constructor(private readonly tickMS: number) {}

  /** Reads a frame that came at a time in ms. Throws if it is none. */
  read(bytes: Uint8Array, now: number): TickFrame {
    const reader = new Bytes(bytes)
    if (reader.u8() !== TICK_FRAME) throw new Error('read frame: not a tick frame')
    this.touched.clear()
    this.count(reader.u16())
    this.at = now
    const frame: TickFrame = { type: 'frame', tick: this.tick, chunks: [] }
    let chunk: ChunkAddress | null = null
    while (!reader.done) {
      const head = reader.u8()
      if (head & 0x80) {
        if (!chunk) throw new Error('read frame: motion in no chunk')
        this.motion(reader, chunk, head & 0x7f)
      } else if (head === 0x21) {
        this.count(reader.u16())
      } else if (head === 0x20) {
        chunk = reader.chunk()
      } else if (head > 0 && head < 0x10) {
        frame.chunks.push(this.news(reader, head))
      } else {
        throw new Error(`read frame: no piece ${head}`)
      }
    }
    frame.tick = this.tick
    frame.chunks.push(...this.moves(now))
    this.touched.clear()
    return frame
  }

  /** Counts ticks on beyond 16 bits. */
  private count(low: number): void {
    this.tick += ((low - this.tick + 0x18000) & 0xffff) - 0x8000
  }

  /** Those who go on by their pace, once a tick; nothing in between. */
  drift(now: number): ChunkDelta[] {
    return now - this.shown < this.tickMS ? [] : this.moves(now)
  }

  gone(chunk: ChunkAddress): void {
    for (const [index, actor] of this.actors) if (same(actor.chunk, chunk)) this.actors.delete(index)
  }

  private moves(now: number): ChunkDelta[] {
    const time = this.tick + Math.max(0, now - this.at) / this.tickMS
    const pieces = new Map<string, { chunk: ChunkAddress; moves: AvatarMove[] }>()
    for (const actor of this.actors.values()) {
      if (!this.touched.has(actor) && !this.walks(actor, time)) continue
      const key = actor.chunk.join()
      let piece = pieces.get(key)
      if (!piece) pieces.set(key, (piece = { chunk: actor.chunk, moves: [] }))
      const gone = Math.min(PACE_TICKS, time - actor.tick)
      const y = actor.y + actor.climb * Math.min(PACE_TICKS, time - actor.tall)
      const { player, yaw, pitch } = actor
      piece.moves.push({ player, x: actor.x + actor.paceX * gone, y, z: actor.z + actor.paceZ * gone, yaw, pitch })
    }
    this.shown = now
    return [...pieces.values()]
  }

  private walks(actor: DecodedAvatar, time: number): boolean {
    if (actor.climb !== 0 && time - actor.tall < PACE_TICKS + 1) return true
    return (actor.paceX !== 0 || actor.paceZ !== 0) && time - actor.tick < PACE_TICKS + 1
  }

  private news(reader: Bytes, head: number): ChunkDelta {
    const chunk = reader.chunk()
    const piece: ChunkDelta = { chunk }
    if (head & 1) piece.enter = reader.list(28, () => this.enter(reader, chunk))
    if (head & 2) piece.leave = reader.list(1, () => this.leave(reader.varint(), chunk)).filter((id) => id !== '')
    if (head & 4) piece.blocks = reader.list(4, () => reader.block(chunk))
    if (head & 8) piece.says = reader.list(20, () => reader.said())
    return piece
  }

  private enter(reader: Bytes, chunk: ChunkAddress): Avatar {
    const index = reader.varint()
    const player = reader.id()
    const length = reader.u8()
    const name = reader.text(length & 0x7f)
    const x = chunk[0] * CHUNK + reader.u16() / PLACE_UNIT
    const y = reader.u16() / PLACE_UNIT + LOWEST
    const z = chunk[1] * CHUNK + reader.u16() / PLACE_UNIT
    const yaw = yawOf(reader.u8())
    const pitch = pitchOf(reader.i8())
    this.actors.set(index, { player, chunk, x, y, z, yaw, pitch, paceX: 0, paceZ: 0, climb: 0, tick: this.tick, tall: this.tick })
    return { player, name, ...(length & 0x80 ? { guest: true } : {}), x, y, z, yaw, pitch }
  }

  private leave(index: number, chunk: ChunkAddress): string {
    const actor = this.actors.get(index)
    if (!actor) return ''
    if (same(actor.chunk, chunk)) this.actors.delete(index)
    return actor.player
  }

  private motion(reader: Bytes, chunk: ChunkAddress, cell: number): void {
    if (cell >= CELL_ROW * CELL_ROW) throw new Error(`read frame: no cell ${cell}`)
    const cornerX = chunk[0] * CHUNK + (cell % CELL_ROW) * CELL
    const cornerZ = chunk[1] * CHUNK + Math.floor(cell / CELL_ROW) * CELL
    let count = reader.u8()
    const base = reader.u8() * STOREY
    for (let index = -1; count > 0; count--) {
      const head = reader.u8()
      const gap = head & 7
      index += 1 + gap + (gap === 7 ? reader.varint() : 0)
      const actor = this.actors.get(index) ?? nobody()
      if (head & 0x08) {
        actor.x = cornerX + reader.u8() / PLACE_UNIT
        actor.z = cornerZ + reader.u8() / PLACE_UNIT
        actor.tick = this.tick
      }
      const told = head & 0x30 // level, climb, or tall
      if (told) {
        actor.y = (told === 0x30 ? reader.u16() : base + reader.u8()) / PLACE_UNIT + LOWEST
        actor.climb = told === 0x10 ? 0 : reader.i8() / CLIMB_UNIT
        actor.tall = this.tick
      }
      if (head & 0x40) {
        actor.paceX = reader.i8() / PACE_UNIT
        actor.paceZ = reader.i8() / PACE_UNIT
      }
      if (head & 0x80) {
        actor.yaw = yawOf(reader.u8())
        actor.pitch = pitchOf(reader.i8())
      }
      actor.chunk = chunk
      this.touched.add(actor)
    }
  }
}

/** Takes what is told of an avatar that nobody has introduced. */
function nobody(): DecodedAvatar {
  return { player: '', chunk: [0, 0], x: 0, y: 0, z: 0, yaw: 0, pitch: 0, paceX: 0, paceZ: 0, climb: 0, tick: 0, tall: 0 }
}

function same(a: ChunkAddress, b: ChunkAddress): boolean {
  return a[0] === b[0] && a[1] === b[1]
}

function yawOf(units: number): number {
  return (units / 256) * 2 * Math.PI
}

function pitchOf(units: number): number {
  return ((units / 127) * Math.PI) / 2
}

/** A player's own move, as the server reads it. */
export function encodeMove(x: number, y: number, z: number, yaw: number, pitch: number): Uint8Array<ArrayBuffer> {
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

/** Bytes that are read from the front. */
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
    if (this.at + length > this.bytes.length) throw new Error('read frame: cut off')
    this.at += length
    return new TextDecoder().decode(this.bytes.subarray(this.at - length, this.at))
  }

  /** A list whose elements have at least so many bytes each. */
  list<T>(least: number, one: () => T): T[] {
    const count = this.varint()
    if (count * least > this.bytes.length - this.at) throw new Error('read frame: a list is cut off')
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

  said(): ChatEvent {
    const player = this.id()
    const name = this.text(this.u8())
    return { player, name, text: this.text(this.varint()) }
  }
}
