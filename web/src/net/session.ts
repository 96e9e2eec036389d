// The player's session: carries the server's messages into the world, and the player's deeds to the server. Survives
// reconnects: edits that were not acknowledged are sent again, with their old numbers, once their chunk is back.

import type { Body } from '../player/body'
import { Clock } from '../world/clock'
import { chunkOf } from '../world/coords'
import { Edits, type PendingEdit } from '../world/edits'
import type { World } from '../world/world'
import { ChunkLoader } from './chunk-loader'
import { Connection, type JoinOptions } from './connection'
import type { Avatar, AvatarMove, ChunkAddress, FromClient, FromServer, GiftEvent, ChunkDelta, Pose, ChatEvent, HitEvent, Welcome } from './protocol'
import { BLOCK_UNKNOWN, RETRYABLE, correctionMessage, denialMessage, failureMessage, refusalMessage } from './messages'

const MOVE_MS = 50
const RETRY_MS = 700
const RETRIES = 40
/** How far the player may be from where a gateway that sent him on has saved him, and stay where he is; in blocks. */
const STRAY = 8

/** Where avatars are kept; render/avatars in the game. */
export interface AvatarStore {
  enter(avatar: Avatar, chunk: ChunkAddress, now: number): void
  move(move: AvatarMove, chunk: ChunkAddress, now: number): void
  leave(player: string, chunk: ChunkAddress): void
  chunkGone(chunk: ChunkAddress): void
  clear(): void
}

/** What the player is to be told. */
export interface SessionEvents {
  /** first is false after a reconnect; moved is true if another gateway has sent the player on. */
  joined(welcome: Welcome, first: boolean, moved: boolean): void
  away(text: string): void
  refused(text: string): void
  toast(text: string): void
  said(said: ChatEvent): void
  struck(struck: HitEvent): void
  given(given: GiftEvent): void
  /** An edit of the player's is safe; block is air if he has broken something. */
  built(block: number): void
  notice(text: string): void
}

export class Session {
  readonly clock = new Clock()
  readonly edits: Edits
  readonly connection: Connection
  private readonly arrivals: ChunkLoader
  private lastMove = 0
  private lastPose: Pose | null = null
  private sentStill = false // the server has heard twice that he stands
  private retries = new Map<number, number>() // of edits, by seq
  private placed = false
  /** The latest welcome; null before the first. */
  welcome: Welcome | null = null
  acknowledged = 0

  constructor(
    url: string,
    private readonly world: World,
    private readonly avatars: AvatarStore,
    private readonly body: Body,
    private readonly events: SessionEvents,
  ) {
    this.edits = new Edits(world)
    this.arrivals = new ChunkLoader(
      world,
      this.edits,
      (x, z) => this.resend(x, z),
      (reason) => {
        console.warn('a chunk could not be read', reason)
        events.toast('A piece of land arrived damaged.')
      },
    )
    this.connection = new Connection(url, {
      welcomed: (welcome, moved) => this.welcomed(welcome, moved),
      message: (message) => this.hear(message),
      lost: (reason) => events.away(`${reason} Coming back…`),
      refused: (code, message) => {
        this.placed = false
        events.refused(failureMessage(code, message))
      },
    })
  }

  join(as: JoinOptions): void {
    this.placed = false
    this.connection.join(as)
  }

  leave(): void {
    this.connection.leave()
    this.forget()
    this.placed = false
    this.welcome = null
  }

  /**
   * Tells the server where the player is, if that changed, not more often than it listens; and once more when he has
   * stopped: others see him go on while nothing is heard of him.
   */
  sendPose(now: number): void {
    if (now - this.lastMove < MOVE_MS || !this.connection.open) return
    const { x, y, z, yaw, pitch } = this.body
    const last = this.lastPose
    const still = last !== null && last.x === x && last.y === y && last.z === z && last.yaw === yaw && last.pitch === pitch
    if (still && this.sentStill) return
    this.sentStill = still
    this.lastMove = now
    this.lastPose = { x, y, z, yaw, pitch }
    this.connection.send({ type: 'move', x, y, z, yaw, pitch })
  }

  /** Lets the avatars go on of whom the server tells nothing because they do what was to be expected. */
  drift(now: number): void {
    for (const piece of this.connection.drift(now)) this.apply(piece, now)
  }

  /** Changes a block, at once here and soon in the world. */
  edit(x: number, y: number, z: number, block: number, now: number): boolean {
    this.lastMove = 0 // the server judges reach by the newest pose
    this.sendPose(now)
    const edit = this.edits.make(x, y, z, block)
    if (edit) this.sendEdit(edit)
    return edit !== null
  }

  say(text: string): void {
    if (this.connection.open) this.connection.send({ type: 'chat', text })
    else this.events.toast('Nobody hears you while the connection is away.')
  }

  hit(player: string): void {
    this.deed({ type: 'hit', player })
  }

  give(player: string, block: number, count: number): void {
    this.deed({ type: 'gift', player, block, count })
  }

  private deed(message: FromClient): void {
    if (!this.connection.open) {
      this.events.toast('Nobody feels that while the connection is away.')
      return
    }
    this.lastMove = 0 // the server judges reach by the newest pose
    this.sendPose(performance.now())
    this.connection.send(message)
  }

  private sendEdit({ seq, x, y, z, block }: PendingEdit): void {
    this.connection.send({ type: 'edit', seq, x, y, z, block })
  }

  private resend(cx: number, cz: number): void {
    const waiting = this.edits.waitingIn(cx, cz)
    if (waiting.length === 0) return
    this.lastMove = 0 // as for a new edit: the player may have walked on since the server last knew him
    this.sendPose(performance.now())
    for (const edit of waiting) this.sendEdit(edit)
  }

  private forget(): void {
    this.arrivals.clear()
    this.edits.forget()
    this.retries.clear()
    this.avatars.clear()
    this.world.clear()
  }

  private welcomed(welcome: Welcome, moved: boolean): void {
    const before = this.welcome
    if (!before || before.world !== welcome.world || before.player !== welcome.player || !this.placed) this.forget()
    this.welcome = welcome
    this.world.height = welcome.sections * 32
    this.clock.set(welcome.time_of_day, performance.now(), welcome.day_ms)
    this.edits.welcome(welcome.next_seq)
    this.arrivals.clear()
    this.avatars.clear() // those still in view enter again
    this.lastPose = null
    const first = !this.placed
    // after a reconnect the server has the place, but where one looks is one's own; and who was sent on has walked on
    if (first || !moved || this.strayed(welcome.pose)) {
      this.put(first ? welcome.pose : { ...welcome.pose, yaw: this.body.yaw, pitch: this.body.pitch })
    }
    this.placed = true
    this.world.keepAround(chunkOf(welcome.pose.x), chunkOf(welcome.pose.z), welcome.view + 1)
    this.events.joined(welcome, first, moved)
  }

  /** Whether the player is too far from a place to be still on his way from there. */
  private strayed({ x, y, z }: Pose): boolean {
    return Math.hypot(this.body.x - x, this.body.y - y, this.body.z - z) > STRAY
  }

  private put(pose: Pose): void {
    this.body.place(pose.x, pose.y, pose.z)
    this.body.yaw = pose.yaw
    this.body.pitch = pose.pitch
  }

  private hear(message: FromServer): void {
    const now = performance.now()
    switch (message.type) {
      case 'chunk':
        void this.arrivals.chunk(message.chunk[0], message.chunk[1], message.data)
        break
      case 'chunk_gone':
        this.arrivals.gone(message.chunk[0], message.chunk[1])
        this.avatars.chunkGone(message.chunk)
        break
      case 'frame':
        for (const piece of message.chunks ?? []) this.apply(piece, now)
        break
      case 'ack':
        this.settle(message.seq, message.block, message.error)
        break
      case 'correction': {
        const { yaw, pitch } = this.body // where one looks is one's own
        this.put({ ...message, yaw, pitch })
        this.lastPose = null
        const words = correctionMessage(message.reason)
        if (words) this.events.toast(words)
        break
      }
      case 'hit':
        this.events.struck(message)
        break
      case 'gift':
        this.events.given(message)
        break
      case 'denied':
        this.events.toast(denialMessage(message.error))
        break
      case 'pong':
        this.clock.set(message.time_of_day, now)
        break
      case 'notice':
        this.events.notice(message.text)
        break
    }
  }

  private apply(piece: ChunkDelta, now: number): void {
    const self = this.welcome?.player
    for (const avatar of piece.enter ?? []) if (avatar.player !== self) this.avatars.enter(avatar, piece.chunk, now)
    for (const player of piece.leave ?? []) this.avatars.leave(player, piece.chunk)
    for (const move of piece.moves ?? []) this.avatars.move(move, piece.chunk, now)
    for (const change of piece.blocks ?? []) this.arrivals.change(change)
    for (const said of piece.says ?? []) this.events.said(said)
  }

  private settle(seq: number, block: number, error: string | undefined): void {
    const asked = this.edits.find(seq)
    if (error && RETRYABLE.has(error) && asked) {
      const tries = (this.retries.get(seq) ?? 0) + 1
      this.retries.set(seq, tries)
      if (tries <= RETRIES) {
        window.setTimeout(() => {
          const edit = this.edits.find(seq)
          if (edit) this.sendEdit(edit)
        }, RETRY_MS)
        return
      }
    }
    this.retries.delete(seq)
    if (error && BLOCK_UNKNOWN.has(error)) this.edits.withdraw(seq)
    else this.edits.acknowledge(seq, block)
    if (error) {
      this.events.toast(refusalMessage(error))
      return
    }
    this.acknowledged++
    if (asked) this.events.built(asked.block)
  }
}
