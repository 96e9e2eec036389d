// One session with a gateway over a WebSocket: joins, proves the key, measures the round trip, comes back by itself
// after a loss, later each time, and goes on at another gateway at once when its own sends it there. What the messages
// mean is the game's business.

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
  /** moved is true if the gateway before has sent the player on, and so has kept his place. */
  welcomed(welcome: Welcome, moved: boolean): void
  message(message: FromServer): void
  /** The session is lost and will be tried again in waitMs. */
  lost(reason: string, waitMs: number): void
  /** The server refused for good; the connection stays closed. */
  refused(code: string, message: string): void
}

const PING_MS = 2000
/** Beats without a word from the server. Counted, not timed: browsers let hidden pages beat once a minute. */
const SILENT_BEATS = 5
/** A guest's old session may linger on the server for a while after a loss. */
const NAME_TAKEN_TRIES = 8

/** How long a home may take to welcome a player who was sent on, before the next one is tried. */
const HOME_MS = 4000
/** How often in a row gateways may send a player on before he waits between two of them. */
const HOPS = 4

/** How long to wait before try n (from 0), in ms; random is in [0, 1). */
export function backoff(n: number, random: number): number {
  return Math.min(10_000, 400 * 2 ** Math.min(n, 6)) * (0.7 + 0.6 * random)
}

export class Connection {
  private socket: WebSocket | null = null
  private stage: AvatarDecoder | null = null // of the session, once it is welcome
  private as: JoinOptions | null = null
  private retry: number | undefined
  private pinger: number | undefined
  private failures = 0
  private welcomedBefore = false
  private moving = false // sent on, and not welcome elsewhere yet
  private hops = 0 // times that the player was sent on since he was welcome
  private world = '' // id of the world of the last welcome
  private late: number | undefined // ends the wait for a home
  private readonly route: Endpoints
  private silent = 0 // beats since the server was heard
  private pings = new Map<number, number>() // nonce to the time it was sent
  private nonce = 0
  private lastFailure: { code: string; message: string } | null = null

  /** Whether a session is open. */
  open = false
  /** Last round trip, ms. */
  ping = 0
  received = 0 // bytes since the page was opened
  sent = 0

  constructor(
    url: string,
    private readonly events: ConnectionEvents,
  ) {
    this.route = new Endpoints(url)
  }

  join(as: JoinOptions): void {
    this.leave()
    this.as = as
    this.failures = 0
    this.welcomedBefore = this.moving = false
    this.hops = 0
    this.connect()
  }

  /** The view distance to ask for after a reconnect. */
  setView(view: number): void {
    if (this.as) this.as = { ...this.as, view }
    this.send({ type: 'view', view })
  }

  leave(): void {
    this.as = null
    window.clearTimeout(this.retry)
    this.drop()
  }

  /** Sends if a session is open; what must not get lost is kept by its owner. */
  send(message: FromClient): void {
    if (this.open) this.write(message)
  }

  /** The avatars who go on by their pace, where they are now. */
  drift(now: number): ChunkDelta[] {
    return this.open && this.stage ? this.stage.drift(now) : []
  }

  private write(message: FromClient): void {
    const data = message.type === 'join' ? encode(message) : encodeBinary(message) // join says the encoding of the rest
    this.sent += data.length
    this.socket?.send(data)
  }

  private connect(): void {
    const as = this.as
    if (!as) return
    this.lastFailure = null
    const socket = new WebSocket(this.route.url)
    socket.binaryType = 'arraybuffer'
    this.socket = socket
    this.stage = null
    this.silent = 0
    this.pinger = window.setInterval(() => this.beat(), PING_MS)
    socket.onopen = () =>
      this.write({
        type: 'join',
        version: SESSION_VERSION,
        name: as.name,
        view: as.view,
        encoding: 'cbor',
        ...(as.identity ? { key: as.identity.key } : {}),
      })
    socket.onmessage = (event) => this.hear(event.data)
    socket.onclose = () => {
      if (this.socket === socket) this.lose('The connection was lost.')
    }
    if (this.moving) this.late = window.setTimeout(() => this.lose('The next node does not answer.'), HOME_MS)
  }

  private hear(data: unknown): void {
    this.silent = 0
    let message: FromServer | null
    try {
      message = this.read(data)
    } catch {
      this.lose('The server sent something unreadable.')
      return
    }
    if (!message) return // of a newer server
    switch (message.type) {
      case 'challenge':
        if (this.foreign(message.world)) return // and gets no signature
        if (this.as?.identity) {
          this.write({ type: 'prove', signature: this.as.identity.prove(message.nonce, message.world) })
        }
        return
      case 'welcome':
        if (!this.foreign(message.world)) this.settle(message)
        return
      case 'reconnect':
        this.goOn(message.homes, message.reason)
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
    if (typeof data === 'string') { // a refusal of the join
      this.received += data.length
      return decode(data)
    }
    const bytes = new Uint8Array(data as ArrayBuffer)
    this.received += bytes.length
    if (bytes[0] === TICK_FRAME) return this.stage?.read(bytes, performance.now()) ?? null
    const message = decodeBinary(bytes)
    if (message?.type === 'welcome') this.stage = new AvatarDecoder(message.tick_ms)
    if (message?.type === 'chunk_gone') this.stage?.gone(message.chunk)
    return message
  }

  /** Leaves a home that is of another world than the one that named it. */
  private foreign(world: string): boolean {
    if (!this.world || world === this.world || this.route.url === this.route.origin) return false
    this.lose('The next node is of another world.')
    return true
  }

  private settle(welcome: Welcome): void {
    const moved = this.moving && this.welcomedBefore
    window.clearTimeout(this.late)
    this.open = this.welcomedBefore = true
    this.moving = false
    this.failures = this.hops = 0
    this.world = welcome.world
    this.route.welcomed()
    this.events.welcomed(welcome, moved)
    this.beat()
  }

  /** The gateway goes away, or takes nobody: on to another one at once, or, if there is none, back here later. */
  private goOn(homes: unknown, reason: string): void {
    const moving = this.route.handOff(homes)
    if (!moving || ++this.hops > HOPS) {
      this.moving = false
      this.lastFailure = { code: 'reconnect', message: reason }
      this.retreat(reason)
      return
    }
    this.drop()
    this.moving = true
    this.failures = 0
    this.connect()
  }

  private fail(code: string, message: string): void {
    const lingering = code === 'name_taken' && this.welcomedBefore && this.failures < NAME_TAKEN_TRIES
    if (isFinal(code) && !lingering) {
      this.leave()
      this.events.refused(code, message)
      return
    }
    this.lastFailure = { code, message } // the server closes now; lose() tells
    this.socket?.close()
  }

  /** The address does not do: another one comes next, if there is any. */
  private lose(reason: string): void {
    this.route.failed()
    this.retreat(reason)
  }

  private retreat(reason: string): void {
    this.drop()
    if (!this.as) return
    // While there are homes that were not tried yet, a player who was sent on does not wait.
    const hurried = this.moving && this.failures < this.route.length - 1
    const wait = hurried ? 0 : backoff(this.failures, Math.random())
    this.failures++
    this.retry = window.setTimeout(() => this.connect(), wait)
    this.events.lost(this.lastFailure?.message ?? reason, wait)
  }

  private drop(): void {
    window.clearInterval(this.pinger)
    window.clearTimeout(this.late)
    this.pings.clear()
    this.open = false
    const socket = this.socket
    this.socket = null
    if (!socket) return
    socket.onopen = socket.onmessage = socket.onclose = null
    socket.close()
  }

  private beat(): void {
    if (++this.silent > SILENT_BEATS) {
      this.lose('The server has gone silent.')
      return
    }
    if (!this.open) return
    this.pings.set(++this.nonce, performance.now())
    this.send({ type: 'ping', nonce: this.nonce })
  }
}
