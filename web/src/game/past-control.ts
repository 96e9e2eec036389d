// The time machine: loads who changed the blocks around the player, and shows the land as it was after each of these changes. The player stands
// still meanwhile, and builds nothing.

import type { Hud } from '../hud/hud'
import { PastBar } from '../hud/past-bar'
import type { HistoryPage } from '../net/protocol'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import { laterTexts } from '../text/later-texts'
import { SIZE, chunkOf } from '../world/coords'
import { Past, type PastChange } from '../world/past'
import type { World } from '../world/world'
import type { Frame, System } from './frame-loop'
import type { Screens } from './screens'
import type { Store } from './store'

const texts = laterTexts.past

/** How many chunks around the player's are shown, in each direction: their side is what one question may ask about. */
const RADIUS = 1
/** The numbers of a change in a page. */
const FIELDS = 7
/** The most changes that are shown, the newest. */
const MAX_CHANGES = 5000
/** The time between two questions, in ms: the server takes one command a second. */
const INTERVAL_MS = 1000
/** How long an answer is waited for, in ms. The server gives up after 15 s. */
const PATIENCE_MS = 18_000
/** How long a time-lapse takes, in s: so much for each change, within bounds. */
const CHANGE_S = 0.5
const SHORTEST_S = 3
const LONGEST_S = 15
/** The arguments of inspect at nodes that answer about boxes. */
const OF_BOXES = 'X,Y,Z [X,Y,Z'

export interface PastState {
  loading: boolean
  changes: number
  /** How many of them are shown. */
  at: number
  playing: boolean
}

/** What is asked for. */
interface Question {
  min: [number, number, number]
  max: [number, number, number]
  until: number
  skip: number
  /** performance.now when the page was needed; null until it is waited for. */
  since: number | null
  /** performance.now when it was sent; null until it is. */
  sentAt: number | null
  /** The answers so far, newest first. */
  changes: PastChange[]
  missing: boolean
}

type Area = Pick<Question, 'min' | 'max'>

/** Returns the control with its bar. */
export function createPast(
  store: Store,
  world: World,
  body: Body,
  session: Session,
  screens: Screens,
  hud: Hud,
  players: { visible: boolean },
  turn: (x: number, y: number) => void,
): PastControl {
  const bar = new PastBar({
    turned: turn,
    sought: (at) => control.seek(at),
    played: () => control.togglePlaying(),
    left: () => control.leave(),
  })
  hud.addDialog('past', bar)
  const control = new PastControl(store, world, body, session, screens, hud.messages, bar, players)
  return control
}

export class PastControl implements System {
  private question: Question | null = null
  private past: Past | null = null
  private playing = false
  private moment = 0 // of the time-lapse, between two changes
  private askedAt = -Infinity

  constructor(
    private readonly store: Pick<Store, 'screen'>,
    private readonly world: World,
    private readonly body: Pick<Body, 'x' | 'z'>,
    private readonly session: Pick<Session, 'sendCommand' | 'usageOf' | 'edits' | 'connection'>,
    private readonly screens: Pick<Screens, 'show' | 'resume'>,
    private readonly messages: Pick<Hud['messages'], 'toast'>,
    private readonly bar: Pick<PastBar, 'load' | 'fail' | 'begin' | 'show' | 'setPlaying'>,
    /** The players of the present, and their names. */
    private readonly players: { visible: boolean },
  ) {
    world.listen({
      chunkChanged: (chunk) => this.past?.chunkChanged(chunk),
      chunkRemoved: () => undefined,
      blockChanged: () => undefined,
    })
  }

  get state(): PastState {
    const { question, past, playing } = this
    return { loading: question !== null, changes: past?.changes.length ?? 0, at: past?.at ?? 0, playing }
  }

  open(): void {
    if (this.store.screen === 'title') return // the player has left while this part was loaded
    const usage = this.session.usageOf('inspect')
    if (usage === null) this.messages.toast(texts.forbidden)
    else if (!usage.startsWith(OF_BOXES)) this.messages.toast(texts.unsupported)
    else {
      const [cx, cz] = [chunkOf(this.body.x), chunkOf(this.body.z)]
      this.question = {
        min: [(cx - RADIUS) * SIZE, 0, (cz - RADIUS) * SIZE],
        max: [(cx + RADIUS + 1) * SIZE - 1, this.world.height - 1, (cz + RADIUS + 1) * SIZE - 1],
        until: 0,
        skip: 0,
        since: null,
        sentAt: null,
        changes: [],
        missing: false,
      }
      this.screens.show('past')
      this.bar.load(0)
    }
  }

  /** Returns to the present. Must be called from a click or key press. */
  leave(): void {
    this.end()
    void this.screens.resume()
  }

  /** Must be called in a new session: an answer of the one before is lost. */
  joined(): void {
    if (this.question) this.question.sentAt = this.question.since = null
  }

  seek(at: number): void {
    this.play(false)
    this.past?.seek(at)
    this.show()
  }

  togglePlaying(): void {
    const { past } = this
    if (!past) return
    if (!this.playing) {
      if (past.at === past.changes.length) past.seek(0)
      this.moment = past.at
      this.show()
    }
    this.play(!this.playing)
  }

  /** Takes a part of the history. */
  answer(page: HistoryPage): void {
    const { question } = this
    if (!question || question.sentAt === null || page.until !== question.until || page.skip !== question.skip) return
    if (page.min.join() !== question.min.join() || page.max.join() !== question.max.join()) return
    const changes = changesOf(page)
    question.changes.push(...changes)
    question.missing ||= page.missing === true
    const oldest = changes.at(-1)
    // a page that lacks a region would be the wrong base for the next one
    if (page.more && !question.missing && oldest && question.changes.length < MAX_CHANGES) {
      question.skip = question.changes.filter(({ time }) => time === oldest.time).length
      question.until = oldest.time
      question.sentAt = question.since = null
      this.bar.load(question.changes.length)
      return
    }
    this.question = null
    this.past = new Past(this.world, question.changes.toReversed(), insideOf(question))
    this.bar.begin(this.past.changes, question.missing, page.more === true)
    this.show()
  }

  update({ now, dt }: Frame): void {
    if (this.store.screen !== 'past') {
      this.end()
      return
    }
    this.ask(now)
    const { past } = this
    if (!past || !this.playing) return
    const { length } = past.changes
    this.moment += (dt * length) / Math.min(LONGEST_S, Math.max(SHORTEST_S, length * CHANGE_S))
    const at = Math.min(length, Math.floor(this.moment))
    if (at === past.at) return
    past.seek(at)
    if (at === length) this.play(false)
    this.show()
  }

  /** Asks the next question, once the player's own edits are there. */
  private ask(now: number): void {
    const { question, session } = this
    if (!question) return
    question.since ??= now
    if (now - question.since > PATIENCE_MS) {
      this.question = null
      this.bar.fail(texts.silent)
      return
    }
    if (question.sentAt !== null || now - this.askedAt < INTERVAL_MS) return
    if (!session.connection.open || session.edits.waiting.length > 0) return
    this.askedAt = question.sentAt = now
    const { min, max, until, skip } = question
    session.sendCommand(`inspect ${min.join()} ${max.join()} ${until} ${skip}`)
  }

  private play(playing: boolean): void {
    this.playing = playing
    this.bar.setPlaying(playing)
  }

  private end(): void {
    if (this.playing) this.play(false)
    this.past?.end()
    this.past = this.question = null
    this.players.visible = true
  }

  private show(): void {
    const { past } = this
    if (!past) return
    this.bar.show(past.at, Date.now())
    this.players.visible = past.at === past.changes.length
  }
}

/** Returns the changes of a page, in its order. */
export function changesOf({ names, changes }: Pick<HistoryPage, 'names' | 'changes'>): PastChange[] {
  const all: PastChange[] = []
  for (let i = 0; i < (changes?.length ?? 0); i += FIELDS) {
    const [time = 0, author = 0, x = 0, y = 0, z = 0, before = 0, after = 0] = changes?.slice(i, i + FIELDS) ?? []
    all.push({ time, name: names?.[author] ?? '', x, y, z, before, after })
  }
  return all
}

/** Returns whether a column of blocks is in an area. */
function insideOf({ min, max }: Area): (x: number, z: number) => boolean {
  return (x, z) => x >= min[0] && x <= max[0] && z >= min[2] && z <= max[2]
}
