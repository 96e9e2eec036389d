// One session with a gateway over a WebSocket. It joins, proves the key, measures the round trip, and reconnects with
// backoff after a loss. When a gateway hands the player off, it connects to the next one at once. It does not interpret
// messages about the world: the session does.

import type { Identity } from './identity'
import {
  SESSION_VERSION,
  decode,
  decodeBinary,
  encode,
  encodeBinary,
  type FromClient,
  type FromServer,
  type ChunkDelta,
  type Welcome,
} from './protocol'
import { Endpoints } from './endpoints'
import { AvatarDecoder, TICK_FRAME } from './tick'
import { isFinal } from './messages'

export interface JoinOptions {
  name: string
  view: number
  /** Null joins as a guest. */
  identity: Identity | null
}

export interface ConnectionEvents {
  /** moved is true if the previous gateway handed the player off, and so has saved their position. */
  welcomed(welcome: Welcome, moved: boolean): void
  message(message: FromServer): void
  /** The session is lost; the next attempt is in waitMs. */
  lost(reason: string, waitMs: number): void
  /** The server refused permanently; the connection stays closed. */
  refused(code: string, message: string): void
}

const PING_MS = 2000
/** Heartbeats without a message from the server. Counted, not timed: browsers run timers of hidden pages once a minute. */
const MAX_SILENT_HEARTBEATS = 5
/** Attempts while the name is taken: a guest's old session may remain on the server for a while after a loss. */
const MAX_NAME_TAKEN_ATTEMPTS = 8

/** How long a handoff target may take to welcome the player before the next one is tried. */
const HANDOFF_TIMEOUT_MS = 4000
/** Handoffs in a row without a welcome before the connection backs off. */
const MAX_HANDOFFS = 4

/** The wait before attempt n (from 0), in ms; random is in [0, 1). */
export function backoff(n: number, random: number): number {
  return Math.min(10_000, 400 * 2 ** Math.min(n, 6)) * (0.7 + 0.6 * random)
}

export class Connection {
  private socket: WebSocket | null = null
  private decoder: AvatarDecoder | null = null // of the current session, from its welcome on
  private options: JoinOptions | null = null // null while the player is not in a world
  private reconnectTimer: number | undefined
  private heartbeatTimer: number | undefined
  private failures = 0
  private welcomedBefore = false
  private handingOff = false // from a handoff to the next welcome
  private handoffs = 0 // since the last welcome
  private world = '' // id of the world of the last welcome
  private handoffTimer: number | undefined
  private readonly endpoints: Endpoints
  private silentHeartbeats = 0 // since the last message from the server
  private pings = new Map<number, number>() // nonce to the time when the ping was sent
  private nonce = 0
  private lastFailure: { code: string; message: string } | null = null

  /** Reports whether a session is open. */
  open = false
  /** The last round trip, in ms. */
  ping = 0
  received = 0 // bytes since the page was opened
  sent = 0

  constructor(
    url: string,
    private readonly events: ConnectionEvents,
  ) {
    this.endpoints = new Endpoints(url)
  }

  join(options: JoinOptions): void {
    this.leave()
    this.options = options
    this.failures = 0
    this.welcomedBefore = this.handingOff = false
    this.handoffs = 0
    this.connect()
  }

  /** Requests a view distance, now and at each reconnect. */
  setView(view: number): void {
    if (this.options) this.options = { ...this.options, view }
    this.send({ type: 'view', view })
  }

  leave(): void {
    this.options = null
    window.clearTimeout(this.reconnectTimer)
    this.drop()
  }

  /** Sends a message if a session is open, and drops it otherwise: callers keep what must not be lost. */
  send(message: FromClient): void {
    if (this.open) this.write(message)
  }

  /** Returns the extrapolated positions of moving avatars, as deltas. */
  extrapolate(now: number): ChunkDelta[] {
    return this.open && this.decoder ? this.decoder.extrapolate(now) : []
  }

  private write(message: FromClient): void {
    const data = message.type === 'join' ? encode(message) : encodeBinary(message) // join selects the encoding of the rest
    this.sent += data.length
    this.socket?.send(data)
  }

  private connect(): void {
    const { options } = this
    if (!options) return
    this.lastFailure = null
    const socket = new WebSocket(this.endpoints.url)
    socket.binaryType = 'arraybuffer'
    this.socket = socket
    this.decoder = null
    this.silentHeartbeats = 0
    this.heartbeatTimer = window.setInterval(() => this.heartbeat(), PING_MS)
    socket.onopen = () =>
      this.write({
        type: 'join',
        version: SESSION_VERSION,
        name: options.name,
        view: options.view,
        encoding: 'cbor',
        ...(options.identity ? { key: options.identity.key } : {}),
      })
    socket.onmessage = (event) => this.receive(event.data)
    socket.onclose = () => {
      if (this.socket === socket) this.failOver('Connection lost.')
    }
    if (this.handingOff) {
      this.handoffTimer = window.setTimeout(() => this.failOver('The next node did not answer.'), HANDOFF_TIMEOUT_MS)
    }
  }

  private receive(data: unknown): void {
    this.silentHeartbeats = 0
    let message: FromServer | null
    try {
      message = this.read(data)
    } catch {
      this.failOver('The server sent an unreadable message.')
      return
    }
    if (!message) return // a type that only newer servers use
    switch (message.type) {
      case 'challenge':
        if (this.rejectOtherWorld(message.world)) return // without a signature
        if (this.options?.identity) {
          this.write({ type: 'prove', signature: this.options.identity.prove(message.nonce, message.world) })
        }
        return
      case 'welcome':
        if (!this.rejectOtherWorld(message.world)) this.welcomed(message)
        return
      case 'reconnect':
        this.handOff(message.homes, message.reason)
        return
      case 'pong': {
        const sentAt = this.pings.get(message.nonce)
        if (sentAt !== undefined) this.ping = performance.now() - sentAt
        this.pings.delete(message.nonce)
        break
      }
      case 'failure':
        this.fail(message.code, message.message)
        return
    }
    this.events.message(message)
  }

  private read(data: unknown): FromServer | null {
    if (typeof data === 'string') {
      // the refusal of a join
      this.received += data.length
      return decode(data)
    }
    const bytes = new Uint8Array(data as ArrayBuffer)
    this.received += bytes.length
    if (bytes[0] === TICK_FRAME) return this.decoder?.decode(bytes, performance.now()) ?? null
    const message = decodeBinary(bytes)
    if (message?.type === 'welcome') this.decoder = new AvatarDecoder(message.tick_ms)
    if (message?.type === 'chunk_gone') this.decoder?.removeChunk(message.chunk)
    return message
  }

  /** Leaves a handoff target that belongs to another world than the gateway that named it; reports whether it did. */
  private rejectOtherWorld(world: string): boolean {
    if (!this.world || world === this.world || this.endpoints.url === this.endpoints.origin) return false
    this.failOver('The next node belongs to another world.')
    return true
  }

  private welcomed(welcome: Welcome): void {
    const moved = this.handingOff && this.welcomedBefore
    window.clearTimeout(this.handoffTimer)
    this.open = this.welcomedBefore = true
    this.handingOff = false
    this.failures = this.handoffs = 0
    this.world = welcome.world
    this.endpoints.preferCurrent()
    this.events.welcomed(welcome, moved)
    this.heartbeat()
  }

  /** The gateway is stopping or full: connects to one of the targets at once, or to the same address later if there is none. */
  private handOff(targets: unknown, reason: string): void {
    const accepted = this.endpoints.handOff(targets)
    if (!accepted || ++this.handoffs > MAX_HANDOFFS) {
      this.handingOff = false
      this.lastFailure = { code: 'reconnect', message: reason }
      this.scheduleReconnect(reason)
      return
    }
    this.drop()
    this.handingOff = true
    this.failures = 0
    this.connect()
  }

  private fail(code: string, message: string): void {
    const ownOldSession = code === 'name_taken' && this.welcomedBefore && this.failures < MAX_NAME_TAKEN_ATTEMPTS
    if (isFinal(code) && !ownOldSession) {
      this.leave()
      this.events.refused(code, message)
      return
    }
    this.lastFailure = { code, message } // the server closes now; failOver reports it
    this.socket?.close()
  }

  /** Drops the connection and reconnects, at the next endpoint if there is one. */
  private failOver(reason: string): void {
    this.endpoints.advance()
    this.scheduleReconnect(reason)
  }

  private scheduleReconnect(reason: string): void {
    this.drop()
    if (!this.options) return
    // during a handoff, do not wait while there are endpoints that have not been tried
    const immediate = this.handingOff && this.failures < this.endpoints.length - 1
    const wait = immediate ? 0 : backoff(this.failures, Math.random())
    this.failures++
    this.reconnectTimer = window.setTimeout(() => this.connect(), wait)
    this.events.lost(this.lastFailure?.message ?? reason, wait)
  }

  private drop(): void {
    window.clearInterval(this.heartbeatTimer)
    window.clearTimeout(this.handoffTimer)
    this.pings.clear()
    this.open = false
    const socket = this.socket
    this.socket = null
    if (!socket) return
    socket.onopen = socket.onmessage = socket.onclose = null
    socket.close()
  }

  private heartbeat(): void {
    if (++this.silentHeartbeats > MAX_SILENT_HEARTBEATS) {
      this.failOver('The server stopped responding.')
      return
    }
    if (!this.open) return
    this.pings.set(++this.nonce, performance.now())
    this.send({ type: 'ping', nonce: this.nonce })
  }
}
