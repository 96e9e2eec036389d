// The player's session: applies the server's messages to the world, and sends the player's actions to the server. It
// survives reconnects: unacknowledged edits are sent again under their sequence numbers once their chunk is loaded.

import type { Pose } from '../motion/pose'
import type { Body } from '../player/body'
import type { Channel } from '../settings/settings'
import { storage } from '../settings/storage'
import { loadNotices, noticeText } from '../text/notices'
import { texts } from '../text/texts'
import { Claims } from '../world/claims'
import { Clock } from '../world/clock'
import { chunkOf } from '../world/coords'
import { Edits, type BlockChange, type PendingEdit } from '../world/edits'
import { Signs } from '../world/signs'
import type { World } from '../world/world'
import type { ChunkCache } from './chunk-cache'
import { encodeRuns } from './bulk'
import { ChunkLoader } from './chunk-loader'
import { Connection, type JoinOptions } from './connection'
import { withPlace } from './command'
import { EditSender } from './edit-sender'
import { KEY_ITEM, type Identity } from './identity'
import {
  MAX_CHAT_BYTES,
  WORLD_COMMAND,
  clipText,
  type Avatar,
  type AvatarMove,
  type ChatEvent,
  type ChunkAddress,
  type ChunkDelta,
  type FromClient,
  type FromServer,
  type GiftEvent,
  type HistoryPage,
  type HitEvent,
  type Line,
  type RollbackPreview,
  type Permissions,
  type Welcome,
} from './protocol'
import { Surroundings } from './surroundings'
import { WITHOUT_BLOCK, RETRYABLE, correctionMessage, denialMessage, failureMessage } from './messages'

const MOVE_MS = 50
/** From one move to the next, at least: the server accepts 100 a second. */
const MIN_MOVE_MS = 12
const HOUR_MS = 3_600_000
/** In blocks: after a handoff, a player this close to their saved position stays where they are. */
const MAX_HANDOFF_DISTANCE = 8
/**
 * In ms: a player who has left a chunk stays shown for this long, because they may be about to enter a chunk of another region.
 * Regions report in either order, and a lost packet is sent again after 200 to 400 ms.
 */
const LEAVE_MS = 400

/** Holds the other players' avatars; render/avatars implements it. */
export interface AvatarStore {
  enter(avatar: Avatar, chunk: ChunkAddress, now: number): void
  move(move: AvatarMove, now: number): void
  leave(player: string, chunk: ChunkAddress): void
  chunkGone(chunk: ChunkAddress): void
  clear(): void
}

/** A player has left a chunk. */
interface Departure {
  player: string
  chunk: ChunkAddress
  at: number // ms
}

/** Events for the player interface. */
export interface SessionEvents {
  /** first is false after a reconnect; moved is true after a handoff from another gateway. */
  joined(welcome: Welcome, first: boolean, moved: boolean): void
  disconnected(text: string): void
  refused(text: string): void
  toast(text: string): void
  chat(event: ChatEvent): void
  line(line: Line): void
  hit(event: HitEvent): void
  gift(event: GiftEvent): void
  /** An edit of the player's is committed; its block is air if they broke something. */
  committed(edit: PendingEdit): void
  /** An edit of the player's is refused; if again, it will be sent once more. */
  rejected(edit: PendingEdit, error: string, again: boolean): void
  notice(text: string): void
  permissions(permissions: Permissions): void
  rollback(preview: RollbackPreview): void
  history(page: HistoryPage): void
}

export class Session {
  readonly clock = new Clock()
  readonly claims = new Claims()
  readonly signs = new Signs()
  readonly edits: Edits
  readonly connection: Connection
  readonly surroundings: Surroundings
  private readonly chunks: ChunkLoader
  private readonly editSender: EditSender
  private lastMove = 0
  private welcomedAt = 0 // by performance.now
  private lastPose: Pose | null = null
  private sentStill = false // the same pose was sent twice
  private identity: Identity | null = null // null for a guest
  private chosenName = ''
  private permissions: Permissions | null = null // of this session
  private registerSent = false // in this session
  private lastCommand = 0 // seq of the last signed one
  private inWorld = false // the body has a position in the world
  private readonly departures = new Map<string, Departure>() // not applied yet, the oldest first
  /** The latest welcome; null before the first. */
  welcome: Welcome | null = null
  /** The address that the node of the page advertises for it; not that of a later gateway, whose page it is not. */
  advertised = ''
  /** The player has used /visit, which is for one place after joining. */
  visited = false
  acknowledged = 0

  constructor(
    url: string,
    private readonly world: World,
    private readonly avatars: AvatarStore,
    private readonly body: Body,
    private readonly events: SessionEvents,
    cache: Pick<ChunkCache, 'get' | 'put'>,
  ) {
    this.edits = new Edits(world)
    this.editSender = new EditSender(this.edits, (edit) => {
      this.sendPoseFirst(performance.now())
      this.sendEdit(edit)
    })
    this.chunks = new ChunkLoader(
      world,
      this.edits,
      (x, z) => this.editSender.chunkLoaded(x, z),
      (reason) => {
        console.warn('decoding a chunk failed', reason)
        events.toast(texts.landMissing)
      },
      cache,
      (x, z) => this.connection.send({ type: 'chunk', x, z }),
    )
    this.surroundings = new Surroundings((message) => {
      if (this.connection.open) this.connection.send(message)
    })
    this.connection = new Connection(url, {
      welcomed: (welcome, moved) => this.welcomed(welcome, moved),
      message: (message) => this.handle(message),
      lost: (reason) => events.disconnected(texts.reconnecting(reason)),
      refused: (failure) => {
        this.inWorld = false
        const unsaved = this.edits.waiting.length
        const lost = unsaved > 0 ? ` ${texts.unsaved(unsaved)}` : ''
        void loadNotices().then(() => events.refused(failureMessage(failure) + lost))
      },
    })
  }

  join(options: JoinOptions): void {
    void loadNotices()
    this.inWorld = false
    this.identity = options.identity
    this.chosenName = options.name
    this.connection.join(options)
  }

  leave(): void {
    this.connection.leave()
    this.reset()
    this.inWorld = false
    this.welcome = null
  }

  /**
   * Sends the player's pose if it changed, at most every MOVE_MS. When the player stops, the final pose is sent twice:
   * other clients extrapolate the movement until they receive an unchanged pose.
   */
  sendPose(now: number): void {
    if (now - this.lastMove < MOVE_MS || !this.connection.open) return
    const { x, y, z, yaw, pitch } = this.body
    const last = this.lastPose
    const still =
      last !== null && last.x === x && last.y === y && last.z === z && last.yaw === yaw && last.pitch === pitch
    if (still && this.sentStill) return
    this.sentStill = still
    this.lastMove = now
    this.lastPose = { x, y, z, yaw, pitch }
    this.connection.send({ type: 'move', x, y, z, yaw, pitch })
  }

  /** Sends the pose against which the server will check the reach of what follows, unless one was sent just now. */
  private sendPoseFirst(now: number): void {
    if (now - this.lastMove > MIN_MOVE_MS) this.lastMove = 0
    this.sendPose(now)
  }

  /** Moves avatars for which the server sends no updates because they move as predicted. */
  extrapolate(now: number): void {
    this.apply(this.connection.extrapolate(now), now)
  }

  /**
   * Changes a block locally at once, and sends the edit as soon as it may be; text is that of a sign. If it follows, it is
   * made only if the edit before is, and what that one follows.
   */
  edit(x: number, y: number, z: number, block: number, now: number, text = '', follows = false): boolean {
    this.advanceSeq(now)
    const last = follows ? this.edits.waiting.at(-1) : undefined
    const edit = this.edits.make(x, y, z, block, text, last?.cause ?? last)
    if (edit) this.editSender.sendDue()
    return edit !== null
  }

  /** How many blocks the player may change at once by bulk edits; 0: none. */
  get bulk(): number {
    return this.permissions?.bulk ?? 0
  }

  /** Changes blocks of one chunk, all or none, if they are what they were before; returns the edit's number. */
  editBulk(changes: readonly BlockChange[], now: number): number {
    this.advanceSeq(now)
    const { seq } = this.edits.makeBulk(changes)
    this.editSender.sendDue()
    return seq
  }

  /** Keeps the numbers of signed edits near the time. */
  private advanceSeq(now: number): void {
    const hours = Math.floor((now - this.welcomedAt) / HOUR_MS)
    this.edits.skipTo((this.welcome?.next_seq ?? 0) + hours * HOUR_MS * 1000)
  }

  /** Sends a line of the chat to a channel; returns false, and says so, if there is no connection. */
  sendChat(text: string, channel: Channel): boolean {
    if (!this.connection.open) {
      this.events.toast(texts.notSent)
      return false
    }
    if (channel === 'near') this.connection.send({ type: 'chat', text })
    else if (!this.sendCommand(WORLD_COMMAND + text)) return false
    this.register()
    return true
  }

  /**
   * Sends a command, without its slash; returns false, and says so, if there is no connection. The place that some need is where the
   * player stands, unless they name another one. A claim needs the player's name: the server carries out commands in their order.
   */
  sendCommand(line: string): boolean {
    const text = withPlace(line, this.permissions?.commands ?? [], this.body)
    if (!this.connection.open || !this.welcome) {
      this.events.toast(texts.notSent)
      return false
    }
    if (clipText(text, MAX_CHAT_BYTES) !== text) {
      this.events.toast(texts.tooLong)
      return false
    }
    if (line === 'register') this.registerSent = true
    if (/^claim\s/i.test(line)) this.register()
    if (line.startsWith('visit ')) this.visited = true
    if (!this.identity) {
      this.connection.send({ type: 'command', text })
      return true
    }
    const { world, name, next_seq } = this.welcome
    // the server's time, but not later than this machine's: a gateway that lies could hold back a command of the future
    const time = Math.min(next_seq + (performance.now() - this.welcomedAt) * 1000, Date.now() * 1000)
    const seq = Math.max(this.lastCommand + 1, Math.floor(time))
    this.lastCommand = seq
    this.connection.send({ type: 'command', text, seq, signature: this.identity.signCommand(world, seq, name, text) })
    return true
  }

  sendHit(player: string): void {
    this.sendInteraction({ type: 'hit', player })
  }

  sendGift(player: string, block: number, count: number): void {
    this.sendInteraction({ type: 'gift', player, block, count })
  }

  private sendInteraction(message: FromClient): void {
    if (!this.connection.open) {
      this.events.toast(texts.notPossible)
      return
    }
    this.sendPoseFirst(performance.now())
    this.connection.send(message)
  }

  private sendEdit({ seq, x, y, z, block, text, changes }: PendingEdit): void {
    const world = this.welcome?.signed ? this.welcome.world : ''
    if (changes) {
      const [at, to, runs] = [chunkOf(x), chunkOf(z), encodeRuns(changes)]
      const signature = world ? this.identity?.signBulk(world, seq, at, to, runs) : undefined
      this.connection.send({ type: 'bulk', seq, x: at, z: to, runs, signature })
      return
    }
    const signature = world ? this.identity?.signEdit(world, seq, x, y, z, block, text) : undefined
    this.connection.send({ type: 'edit', seq, x, y, z, block, signature, text: text || undefined })
  }

  private reset(): void {
    this.chunks.clear()
    this.edits.clear()
    this.signs.clear()
    this.clearAvatars()
    this.world.clear()
  }

  private clearAvatars(): void {
    this.departures.clear()
    this.avatars.clear()
  }

  private welcomed(welcome: Welcome, moved: boolean): void {
    const before = this.welcome
    if (!before || before.world !== welcome.world || before.player !== welcome.player || !this.inWorld) {
      this.reset()
      this.inWorld = false
    }
    this.welcome = welcome
    if (this.connection.atOrigin) this.advertised = welcome.url ?? ''
    this.visited = false
    this.welcomedAt = performance.now()
    this.permissions = null
    this.registerSent = false
    this.claims.set([])
    this.world.height = welcome.sections * 32
    this.clock.set(welcome.time_of_day, performance.now(), welcome.day_ms)
    this.clock.setDate(welcome.next_seq / 1000, performance.now())
    this.edits.setNextSeq(welcome.next_seq)
    this.editSender.begin()
    this.chunks.clear()
    this.surroundings.begin(welcome)
    this.clearAvatars() // those still in view enter again
    this.lastPose = null
    const first = !this.inWorld
    // the server has the position after a reconnect, but the client keeps the angles; after a handoff the player may have
    // walked on from the saved position
    if (first || !moved || this.isFarFrom(welcome.pose)) {
      this.placeBody(first ? welcome.pose : { ...welcome.pose, yaw: this.body.yaw, pitch: this.body.pitch })
    }
    this.inWorld = true
    this.world.keepAround(chunkOf(welcome.pose.x), chunkOf(welcome.pose.z), welcome.view)
    this.events.joined(welcome, first, moved)
    if (welcome.name !== this.chosenName && (first || welcome.name !== before?.name))
      this.events.toast(texts.nameTaken(this.chosenName, welcome.name))
  }

  /** Reports whether the player is too far from a position to have just walked from it. */
  private isFarFrom({ x, y, z }: Pose): boolean {
    return Math.hypot(this.body.x - x, this.body.y - y, this.body.z - z) > MAX_HANDOFF_DISTANCE
  }

  private placeBody(pose: Pose): void {
    this.body.place(pose.x, pose.y, pose.z)
    this.body.yaw = pose.yaw
    this.body.pitch = pose.pitch
  }

  private handle(message: FromServer): void {
    const now = performance.now()
    switch (message.type) {
      case 'chunk':
        this.signs.chunkGone(...message.chunk)
        void this.chunks.load(message.chunk[0], message.chunk[1], message.data)
        break
      case 'chunk_hash':
        this.signs.chunkGone(...message.chunk)
        void this.chunks.loadHash(message.chunk[0], message.chunk[1], message.hash)
        break
      case 'chunk_gone':
        this.signs.chunkGone(...message.chunk)
        this.chunks.unload(message.chunk[0], message.chunk[1])
        this.avatars.chunkGone(message.chunk)
        break
      case 'signs':
        this.signs.add(message.signs)
        break
      case 'frame':
        this.apply(message.chunks ?? [], now)
        break
      case 'ack':
        this.applyAck(message.seq, message.block, message.error)
        break
      case 'correction': {
        const { yaw, pitch } = this.body // the client keeps the angles
        this.placeBody({ ...message, yaw, pitch })
        this.lastPose = null
        const text = correctionMessage(message.reason)
        if (text) this.events.toast(text)
        break
      }
      case 'hit':
        this.events.hit(message)
        break
      case 'gift':
        this.events.gift(message)
        break
      case 'denied':
        this.events.toast(denialMessage(message.error))
        break
      case 'pong':
        this.clock.set(message.time_of_day, now)
        break
      case 'line':
        this.events.line(message)
        break
      case 'notice':
        void loadNotices().then(() => this.events.notice(noticeText(message)))
        break
      case 'standing':
        this.applyPermissions(message)
        break
      case 'claims':
        this.claims.set(message.claims ?? [])
        break
      case 'rollback':
        this.events.rollback(message)
        break
      case 'history':
        this.events.history(message)
        break
      case 'nearby':
      case 'people':
        this.surroundings.answer(message, now)
        break
    }
  }

  private applyPermissions(permissions: Permissions): void {
    this.permissions = permissions
    this.events.permissions(permissions)
  }

  /** Registers the player's name to their key, once in a session, when they first do something: who only looks leaves nothing behind. */
  private register(): void {
    if (this.registerSent || this.registeredName !== '') return
    const own = this.welcome?.name === this.chosenName // otherwise it is somebody else's, and ours has a fingerprint
    // a name belongs to its key for good: not to one that lasts only as long as the page
    if (!this.identity || !own || !storage.keeps(KEY_ITEM) || !this.mayUse('register')) return
    this.sendCommand('register')
  }

  /** Reports whether the player may use a command. */
  mayUse(command: string): boolean {
    return this.usageOf(command) !== null
  }

  /** Returns the arguments of a command, or null if the player may not use it. */
  usageOf(command: string): string | null {
    const found = this.permissions?.commands.find(({ name }) => name === command)
    return found ? (found.usage ?? '') : null
  }

  /** The name that is registered to the player's key, or empty. */
  get registeredName(): string {
    return this.permissions?.name ?? ''
  }

  /** Applies deltas in order, and then the departures that are due. */
  private apply(deltas: ChunkDelta[], now: number): void {
    for (const delta of deltas) this.applyDelta(delta, now)
    for (const [key, { player, chunk, at }] of this.departures) {
      if (now - at < LEAVE_MS) break
      this.departures.delete(key)
      this.avatars.leave(player, chunk)
    }
  }

  private applyDelta(delta: ChunkDelta, now: number): void {
    const self = this.welcome?.player
    const { chunk } = delta
    for (const avatar of delta.enter ?? []) {
      if (avatar.player === self) continue
      this.departures.delete(departureKey(avatar.player, chunk))
      this.avatars.enter(avatar, chunk, now)
    }
    for (const player of delta.leave ?? []) {
      const key = departureKey(player, chunk)
      if (!this.departures.has(key)) this.departures.set(key, { player, chunk, at: now })
    }
    for (const move of delta.moves ?? []) this.avatars.move(move, now)
    for (const change of delta.blocks ?? []) {
      this.chunks.applyChange(change)
      this.signs.blockChanged(change.x, change.y, change.z)
    }
    for (const event of delta.says ?? []) this.events.chat(event)
  }

  private applyAck(seq: number, block: number, error: string | undefined): void {
    const edit = this.edits.find(seq)
    if (edit && error && RETRYABLE.has(error) && this.editSender.retry(seq)) {
      this.events.rejected(edit, error, true)
      return
    }
    if (error && (edit?.changes || WITHOUT_BLOCK.has(error))) this.edits.withdraw(seq)
    else this.edits.acknowledge(seq, block)
    if (edit && error) this.edits.withdrawCausedBy(edit)
    this.editSender.settled(seq)
    if (error) {
      if (edit) this.events.rejected(edit, error, false)
      return
    }
    this.acknowledged++
    this.register()
    if (edit) this.events.committed(edit)
  }
}

function departureKey(player: string, chunk: ChunkAddress): string {
  return `${player} ${chunk.join()}`
}
