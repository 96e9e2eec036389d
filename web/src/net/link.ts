// One WebSocket to one gateway: it joins, reads and writes messages, measures the round trip, and notices silence. It ends
// with closed, at most once.

import { texts } from '../text/texts'
import {
  decode,
  decodeBinary,
  encode,
  encodeBinary,
  type ChunkDelta,
  type FromClient,
  type FromServer,
} from './protocol'
import { AvatarDecoder, TICK_FRAME } from './tick'

const PING_MS = 2000
/** From a pong to the next ping, at most. The server ends a session of which it has received nothing for 60 s. */
const PING_AGAIN_MS = 20_000
/** Heartbeats without a message from the server. Counted, not timed: browsers run timers of hidden pages once a minute. */
const MAX_SILENT_HEARTBEATS = 5

export interface LinkEvents {
  message(message: FromServer): void
  closed(reason: string): void
}

/** The traffic of all links since the page was opened. */
export interface Traffic {
  received: number // bytes
  sent: number // bytes
  ping: number // the last round trip, in ms
}

export class Link {
  private readonly socket: WebSocket
  private readonly heartbeatTimer: number
  private pingTimer = 0
  private decoder: AvatarDecoder | null = null // from the welcome on
  private silentHeartbeats = 0 // since the last message from the server
  private readonly pings = new Map<number, number>() // nonce to the time when the ping was sent
  private nonce = 0

  constructor(
    url: string,
    skin: number,
    join: FromClient,
    private readonly traffic: Traffic,
    private readonly events: LinkEvents,
  ) {
    this.socket = new WebSocket(addressFor(url, skin))
    this.socket.binaryType = 'arraybuffer'
    let closed = texts.unanswered
    this.socket.onopen = () => {
      closed = texts.connectionLost
      this.send(join)
    }
    this.socket.onmessage = (event) => this.receive(event.data)
    this.socket.onclose = () => this.fail(closed)
    this.heartbeatTimer = window.setInterval(() => this.heartbeat(), PING_MS)
  }

  send(message: FromClient): void {
    const data = message.type === 'join' ? encode(message) : encodeBinary(message) // join selects the encoding of the rest
    this.traffic.sent += data.length
    this.socket.send(data)
  }

  ping(): void {
    this.pings.set(++this.nonce, performance.now())
    this.send({ type: 'ping', nonce: this.nonce })
  }

  /** Returns the predicted positions of moving avatars, as deltas. */
  extrapolate(now: number): ChunkDelta[] {
    return this.decoder?.extrapolate(now) ?? []
  }

  /** Closes the socket without an event. */
  close(): void {
    window.clearInterval(this.heartbeatTimer)
    window.clearTimeout(this.pingTimer)
    this.socket.onopen = this.socket.onmessage = this.socket.onclose = null
    this.socket.close()
  }

  private fail(reason: string): void {
    this.close()
    this.events.closed(reason)
  }

  private receive(data: unknown): void {
    this.silentHeartbeats = 0
    let message: FromServer | null
    try {
      message = this.read(data)
    } catch {
      this.fail(texts.unreadable)
      return
    }
    if (!message) return // a type that only newer servers use
    if (message.type === 'pong') this.measure(message.nonce)
    this.events.message(message)
  }

  private read(data: unknown): FromServer | null {
    if (typeof data === 'string') {
      this.traffic.received += data.length // the refusal of a join
      return decode(data)
    }
    const bytes = new Uint8Array(data as ArrayBuffer)
    this.traffic.received += bytes.length
    if (bytes[0] === TICK_FRAME) return this.decoder?.decode(bytes, performance.now()) ?? null
    const message = decodeBinary(bytes)
    if (message?.type === 'welcome') this.decoder = new AvatarDecoder(message.tick_ms)
    if (message?.type === 'chunk_gone') this.decoder?.removeChunk(message.chunk)
    return message
  }

  private measure(nonce: number): void {
    const sentAt = this.pings.get(nonce)
    if (sentAt !== undefined) this.traffic.ping = performance.now() - sentAt
    this.pings.delete(nonce)
    // browsers run the heartbeat of a hidden page once a minute, but not a timer that a message has set
    window.clearTimeout(this.pingTimer)
    this.pingTimer = window.setTimeout(() => this.ping(), PING_AGAIN_MS)
  }

  private heartbeat(): void {
    if (++this.silentHeartbeats > MAX_SILENT_HEARTBEATS) this.fail(texts.silent)
    else if (this.decoder) this.ping()
  }
}

/** Returns the address of a gateway for a player with a skin. It says what the client understands; older gateways ignore that. */
export function addressFor(address: string, skin: number): string {
  const url = new URL(address)
  url.searchParams.set('hashes', '')
  url.searchParams.set('stance', '')
  url.searchParams.set('skin', skin ? skin.toString(16) : '')
  return url.href
}
