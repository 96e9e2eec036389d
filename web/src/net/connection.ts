// The player's connection to a world. It joins, proves the key, and reconnects with backoff after a loss. When a gateway
// hands the player off, it connects to the next one at once. It does not interpret messages about the world: the session
// does.

import { noticeText } from '../text/notices'
import { texts } from '../text/texts'
import { Endpoints } from './endpoints'
import type { Identity } from './identity'
import { Link, type Traffic } from './link'
import { failureMessage, isFinal } from './messages'
import {
  SESSION_VERSION,
  type ChunkDelta,
  type Failure,
  type FromClient,
  type FromServer,
  type Welcome,
} from './protocol'

export interface JoinOptions {
  name: string
  view: number
  /** Null joins as a guest. */
  identity: Identity | null
  /** How the player has chosen to look (docs/protocol.md); 0 is no choice. */
  skin: number
}

export interface ConnectionEvents {
  /** moved is true if the previous gateway handed the player off, and so has saved their position. */
  welcomed(welcome: Welcome, moved: boolean): void
  message(message: FromServer): void
  /** The session is lost; the next attempt is in waitMs. */
  lost(reason: string, waitMs: number): void
  /** The server refused permanently; the connection stays closed. */
  refused(failure: Failure): void
}

/** How long a taken name is tried again: a guest's old session remains on the server for a minute after a loss (gameserver/conn.go). */
const NAME_TAKEN_MS = 90_000
/** How long a handoff target may take to welcome the player before the next one is tried. */
const HANDOFF_TIMEOUT_MS = 4000
/** Handoffs in a row without a welcome before the connection backs off. */
const MAX_HANDOFFS = 4

/** The wait before attempt n (from 0), in ms; random is in [0, 1). */
export function backoff(n: number, random: number): number {
  return Math.min(10_000, 400 * 2 ** Math.min(n, 6)) * (0.7 + 0.6 * random)
}

/** The player's stay in a world, over all its links. */
interface Stay {
  options: JoinOptions
  welcomed: boolean // at least once
  handingOff: boolean // from a handoff to the next welcome
  handoffs: number // since the last welcome
  failures: number // attempts since the last welcome or handoff
  triedSince: number // the first attempt since the last welcome, by performance.now; Infinity before it
}

type State =
  | { readonly name: 'away' }
  /** Until the next attempt. */
  | { readonly name: 'waiting'; readonly stay: Stay; readonly timer: number }
  /** From an attempt to its welcome. The timer, which only handoffs have, gives up a silent target. */
  | { readonly name: 'joining'; readonly stay: Stay; readonly link: Link; readonly timer: number | undefined }
  | { readonly name: 'joined'; readonly stay: Stay; readonly link: Link }

type Connected = Extract<State, { link: Link }>

export class Connection {
  private state: State = { name: 'away' }
  private world = '' // id of the world of the last welcome
  private readonly endpoints: Endpoints
  readonly traffic: Traffic = { received: 0, sent: 0, ping: 0 }

  constructor(
    url: string,
    private readonly events: ConnectionEvents,
  ) {
    this.endpoints = new Endpoints(url)
  }

  /** The WebSocket address of the gateway in use. */
  get url(): string {
    return this.endpoints.url
  }

  /** Reports whether the gateway is the node that the page comes from. */
  get atOrigin(): boolean {
    return this.endpoints.url === this.endpoints.origin
  }

  /** Reports whether a session is open. */
  get open(): boolean {
    return this.state.name === 'joined'
  }

  join(options: JoinOptions): void {
    this.connect({ options, welcomed: false, handingOff: false, handoffs: 0, failures: 0, triedSince: Infinity })
  }

  /** Requests a view distance, now and at each reconnect. */
  setView(view: number): void {
    if (this.state.name === 'away') return
    this.state.stay.options = { ...this.state.stay.options, view }
    this.send({ type: 'view', view })
  }

  /** Joins again with a skin, as gateways learn it when a player joins. */
  setSkin(skin: number): void {
    if (this.state.name === 'away') return
    const { stay } = this.state
    if (stay.options.skin === skin) return
    stay.options = { ...stay.options, skin }
    stay.handingOff = stay.welcomed // the position is saved, and nothing is lost
    this.connect(stay)
  }

  leave(): void {
    this.enter({ name: 'away' })
  }

  /** Sends a message if a session is open, and drops it otherwise: callers keep what must not be lost. */
  send(message: FromClient): void {
    if (this.state.name === 'joined') this.state.link.send(message)
  }

  /** Returns the predicted positions of moving avatars, as deltas. */
  extrapolate(now: number): ChunkDelta[] {
    return this.state.name === 'joined' ? this.state.link.extrapolate(now) : []
  }

  /** Enters a state, and ends the timer and the link of the one before. */
  private enter(state: State): void {
    const before = this.state
    this.state = state
    if ('timer' in before) window.clearTimeout(before.timer)
    if ('link' in before && !('link' in state && state.link === before.link)) before.link.close()
  }

  private connect(stay: Stay): void {
    stay.triedSince = Math.min(stay.triedSince, performance.now())
    const { name, view, identity, skin } = stay.options
    const join: FromClient = {
      type: 'join',
      version: SESSION_VERSION,
      name,
      view,
      encoding: 'cbor',
      key: identity?.key,
    }
    // once all endpoints have been tried, one that answers slowly is better than none
    const timer =
      stay.handingOff && stay.failures < this.endpoints.length
        ? window.setTimeout(() => this.failOver(stay, texts.nextSilent), HANDOFF_TIMEOUT_MS)
        : undefined
    const link = new Link(this.endpoints.url, skin, join, this.traffic, {
      message: (message) => {
        if ('link' in this.state) this.receive(this.state, message)
      },
      closed: (reason) => this.failOver(stay, reason),
    })
    this.enter({ name: 'joining', stay, link, timer })
  }

  private receive({ stay, link }: Connected, message: FromServer): void {
    switch (message.type) {
      case 'challenge': {
        const { identity } = stay.options
        if (this.isOtherWorld(message.world)) this.failOver(stay, texts.otherWorld)
        else if (identity) link.send({ type: 'prove', signature: identity.prove(message.nonce, message.world) })
        return
      }
      case 'welcome':
        if (this.isOtherWorld(message.world)) this.failOver(stay, texts.otherWorld)
        else this.welcomed(stay, link, message)
        return
      case 'reconnect':
        this.handOff(stay, message.homes, noticeText({ text: message.reason, code: message.code }))
        return
      case 'failure':
        this.fail(stay, message)
        return
      default:
        this.events.message(message)
    }
  }

  /** Reports whether a handoff target belongs to another world than the gateway that named it. */
  private isOtherWorld(world: string): boolean {
    return this.world !== '' && world !== this.world && !this.atOrigin
  }

  private welcomed(stay: Stay, link: Link, welcome: Welcome): void {
    const moved = stay.handingOff && stay.welcomed
    stay.welcomed = true
    stay.handingOff = false
    stay.failures = stay.handoffs = 0
    stay.triedSince = Infinity
    this.enter({ name: 'joined', stay, link })
    this.world = welcome.world
    this.endpoints.preferCurrent()
    link.ping()
    this.events.welcomed(welcome, moved)
  }

  /** The gateway is stopping or full: connects to one of the targets at once, or to the same address later if there is none. */
  private handOff(stay: Stay, targets: unknown, reason: string): void {
    stay.handingOff = this.endpoints.handOff(targets) && ++stay.handoffs <= MAX_HANDOFFS
    if (!stay.handingOff) {
      this.reconnectLater(stay, reason)
      return
    }
    stay.failures = 0
    this.connect(stay)
  }

  private fail(stay: Stay, failure: Failure): void {
    const { code } = failure
    const ownOldSession =
      code === 'name_taken' &&
      this.state.name === 'joining' &&
      stay.welcomed &&
      performance.now() - stay.triedSince < NAME_TAKEN_MS
    if (!isFinal(code) || ownOldSession) {
      this.failOver(stay, failureMessage(failure))
      return
    }
    if (code === 'name_taken' && this.open && stay.options.identity) {
      this.reconnectLater(stay, failureMessage(failure)) // their name has a fingerprint then
      return
    }
    this.leave()
    this.events.refused(failure)
  }

  /** Reconnects, at the next endpoint if there is one. */
  private failOver(stay: Stay, reason: string): void {
    this.endpoints.advance()
    this.reconnectLater(stay, reason)
  }

  private reconnectLater(stay: Stay, reason: string): void {
    // during a handoff, do not wait while there are endpoints that have not been tried
    const immediate = stay.handingOff && stay.failures < this.endpoints.length - 1
    const wait = immediate ? 0 : backoff(stay.failures, Math.random())
    stay.failures++
    this.enter({ name: 'waiting', stay, timer: window.setTimeout(() => this.connect(stay), wait) })
    this.events.lost(reason, wait)
  }
}
