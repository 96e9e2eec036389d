// The building tools: lets the player choose what to build, shows it before it is there, makes the edits, and takes them back.

import { decodeBlueprint, encodeBlueprint, MAX_FILE } from '../build/blueprint'
import { copyBox, countBlocks, placed, turned, type Copy } from '../build/copy'
import { Gesture, type Stage, type Tool } from '../build/gesture'
import { isInReach, judge, type Place } from '../build/judge'
import { Pace } from '../build/pace'
import {
  besideFace,
  boxBetween,
  cornerInAir,
  hollowFrom,
  placesOf,
  problemOf,
  sidesOf,
  type Shape,
} from '../build/shapes'
import { UndoStack, inverseOf, type Change, type Step } from '../build/undo-stack'
import { Work, type Wanted } from '../build/work'
import { BuildBar, type BuildStatus } from '../hud/build-bar'
import { BuildDialog } from '../hud/build-dialog'
import type { Hud } from '../hud/hud'
import type { InputKind } from '../input/kind'
import { refusalMessage } from '../net/messages'
import type { Session } from '../net/session'
import { LEFT, RIGHT, type BlockInteraction } from '../player/block-interaction'
import { EYE, bodyTouchesBlock, type Body } from '../player/body'
import { castRay, type Vector } from '../player/ray'
import type { Avatars } from '../render/avatars'
import { Ghost } from '../render/ghost'
import type { View } from '../render/view'
import { laterTexts } from '../text/later-texts'
import { texts as commonTexts } from '../text/texts'
import { AIR, boxesOf, isAimable, isPlant, isReplaceable, useDoor } from '../world/blocks'
import type { PendingEdit } from '../world/edits'
import type { World } from '../world/world'
import type { Frame, System } from './frame-loop'
import type { Screens } from './screens'
import type { Store } from './store'

/** How far away a corner may be, in blocks. */
const CORNER_REACH = 64
/** In blocks: the reach that the tools use is that much shorter, because the server measures from a pose that is sent rounded. */
const REACH_MARGIN = 0.05
const SHOWN_EVERY_MS = 200
const RESULT_MS = 6000
const texts = laterTexts.build
type Purpose = 'build' | 'undo' | 'redo'

/** The state for the end-to-end tests. */
export interface BuildState {
  tool: Tool | ''
  stage: Stage | ''
  /** The number of blocks shown before they are there. */
  ghosts: number
  /** The work under way. */
  done: number
  total: number
  undo: number
  redo: number
}

export class BuildControl implements System {
  private gesture: Gesture | null = null
  private copy: Copy | null = null
  private replaces = false
  private job: { work: Work; purpose: Purpose } | null = null
  private undoNext = false // as soon as the work has stopped
  private lastHandEdit: PendingEdit | null = null
  private result: { text: string; until: number } | null = null
  private shown = '' // what the ghost shows
  private ghosts: readonly Wanted[] = []
  private shownAt = 0 // ms
  private readonly stack = new UndoStack()
  private readonly pace = new Pace()
  private readonly ghost = new Ghost()
  private readonly bar: BuildBar
  private readonly dialog: BuildDialog

  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Session,
    private readonly avatars: Avatars,
    private readonly interaction: Pick<BlockInteraction, 'ahead' | 'sight' | 'reach'>,
    private readonly screens: Screens,
    private readonly hud: Hud,
    view: View,
    /** Ends what else clicks are used for. */
    private readonly endOthers: () => void,
  ) {
    view.add([this.ghost.mesh])
    this.bar = new BuildBar({
      raise: (steps) => this.scroll(steps),
      turn: () => this.turn(),
      confirm: () => this.confirm(),
      undo: () => this.undo(),
      cancel: () => this.cancel(),
    })
    this.dialog = new BuildDialog({
      chosen: (tool) => this.begin(tool),
      undo: () => this.undo(),
      redo: () => this.redo(),
      save: () => this.save(),
      opened: (file) => void this.openFile(file),
      setReplaces: (replaces) => (this.replaces = replaces),
      close: () => void screens.resume(),
    })
    hud.addInWorld(this.bar.root)
    hud.addDialog('build', this.dialog)
  }

  /** Clicks choose what a tool does. */
  get active(): boolean {
    return this.gesture !== null
  }

  get state(): BuildState {
    const { gesture, job, ghosts, stack } = this
    return {
      tool: gesture?.tool ?? '',
      stage: gesture?.stage ?? '',
      ghosts: ghosts.length,
      done: job?.work.done ?? 0,
      total: job?.work.total ?? 0,
      ...stack.sizes,
    }
  }

  openPanel(): void {
    this.updateDialog()
    this.screens.show('build')
  }

  /** Handles a click while a tool is used; returns false if none is. */
  click(button: number): boolean {
    const { gesture } = this
    if (!gesture) return false
    if (button === RIGHT && !gesture.back()) this.gesture = null
    if (button !== LEFT) return button === RIGHT
    this.point(gesture)
    if (gesture.stage === 'confirm') this.confirm()
    else if (!gesture.choose()) this.say(laterTexts.aimAtBlock)
    return true
  }

  /** Moves the last corner, or turns the copy; returns false if no tool takes the wheel now. */
  scroll(steps: number): boolean {
    const { gesture } = this
    if (gesture?.tool === 'paste') this.turn()
    else if (gesture?.stage === 'confirm') gesture.raise(steps, this.world.height)
    else return false
    return true
  }

  /** Leaves the tool, or stops the work; returns false if there is none. */
  cancel(): boolean {
    const { gesture, job } = this
    const stops = gesture === null && job !== null && job.work.left.length > 0
    if (stops) this.stop()
    this.leaveTool()
    return gesture !== null || stops
  }

  leaveTool(): void {
    this.gesture = null
  }

  undo(): void {
    if (this.job) {
      this.undoNext = this.job.purpose !== 'undo'
      this.stop()
      return
    }
    const step = this.stack.takeUndo()
    if (step) this.start(changesOf(inverseOf(step)), 'undo')
    else this.say(texts.nothingToUndo)
  }

  redo(): void {
    if (this.job) return
    const step = this.stack.takeRedo()
    if (step) this.start(changesOf(step), 'redo')
    else this.say(texts.nothingToRedo)
  }

  /** Notes an edit that the server has acknowledged. */
  committed(edit: PendingEdit): void {
    const { seq, x, y, z, before, block: after } = edit
    const change: Change = { x, y, z, before, after }
    if (this.job?.work.committed(seq, change)) {
      this.pace.committed()
      return
    }
    if (before === after) return
    const last = this.lastHandEdit
    const near = last && seq === last.seq + 1 && x === last.x && z === last.z
    // a plant that broke together with the block below it; the other half of a door
    const plant = near && isPlant(before) && after === AIR && last.block === AIR && y > last.y
    const door = (useDoor(before) ?? useDoor(after)) !== null
    const half = near && door && Math.abs(y - last.y) === 1 && before === last.before && after === last.block
    if (plant || half) this.stack.extend(change)
    else this.stack.add([change])
    this.lastHandEdit = edit
    this.updateDialog()
  }

  /** Notes an edit that the server has refused; returns false if a tool did not make it. */
  rejected({ seq }: PendingEdit, error: string, again: boolean): boolean {
    const work = this.job?.work
    if (error === 'rate') this.pace.refused(performance.now())
    return again ? (work?.owns(seq) ?? false) : (work?.reject(seq, error) ?? false)
  }

  /** Discards everything, for another world or another player. */
  reset(): void {
    this.gesture = this.job = this.result = this.lastHandEdit = null
    this.undoNext = false
    this.stack.clear()
  }

  update({ now }: Frame): void {
    if (!this.store.inWorld) this.reset()
    const { gesture, job } = this
    if (gesture && this.interaction.sight && this.store.screen === 'play') this.point(gesture)
    if (job && this.store.screen !== 'past') {
      job.work.advance(now, this.pace)
      if (job.work.finished) this.finish(now)
    }
    this.showGhost(now)
    if (now - this.shownAt < SHOWN_EVERY_MS) return
    this.shownAt = now
    this.bar.show(this.status(now))
  }

  private begin(tool: Tool): void {
    this.endOthers()
    this.gesture = new Gesture(tool)
    this.result = null
    void this.screens.resume()
  }

  private turn(): void {
    if (this.copy) this.copy = turned(this.copy)
    this.shown = '' // its sides may be as long as before
  }

  private point(gesture: Gesture): void {
    gesture.point(this.placeFor(gesture))
  }

  /** Returns the place that the player points at, as the tool needs it. */
  private placeFor({ tool, first }: Gesture): Vector | null {
    const { world, body, interaction } = this
    const eyes: Vector = [body.x, body.y + EYE, body.z]
    const ahead = interaction.ahead()
    const inAir = () => first && cornerInAir(eyes, ahead, first, CORNER_REACH, world.height)
    if (tool === 'wall' && first) return inAir()
    const hit = castRay(world, eyes, ahead, CORNER_REACH, isAimable, boxesOf)
    if (!hit || !world.loaded(hit.x, hit.z)) return inAir()
    const taken = tool === 'clear' || tool === 'copy' || isPlant(world.get(hit.x, hit.y, hit.z))
    const [x, y, z] = taken ? [hit.x, hit.y, hit.z] : besideFace(hit)
    return [x, Math.min(y, world.height - 1), z]
  }

  /** Returns the blocks that a gesture would place, or why it cannot. */
  private wantedBy({ tool, corners, stage }: Gesture): Wanted[] | string {
    if (!corners) return []
    const [a, b] = corners
    const block = tool === 'clear' ? AIR : this.store.selectedBlock
    const all = (places: Vector[]): Wanted[] => places.map(([x, y, z]) => ({ x, y, z, block }))
    if (tool === 'paste') return this.copy ? placed(this.copy, a) : texts.noCopy
    if (tool === 'fill') {
      if (stage !== 'confirm') return all([a])
      const places = hollowFrom(a, (x, y, z) => isReplaceable(this.world.get(x, y, z)))
      return places ? all(places) : texts.notHollow
    }
    const shape = shapeOf(tool)
    return problemOf(shape, a, b) ?? all(placesOf(shape, a, b))
  }

  private confirm(): void {
    const { gesture } = this
    if (!gesture?.corners || gesture.stage !== 'confirm') {
      this.say(texts.choosePlace)
      return
    }
    const wanted = this.wantedBy(gesture)
    if (typeof wanted === 'string') {
      this.say(wanted)
      return
    }
    if (gesture.tool === 'copy') {
      this.copy = copyBox(this.world, boxBetween(...gesture.corners))
      this.shown = ''
      this.gesture = new Gesture('paste')
      this.say(texts.copiedNow(countBlocks(this.copy)))
      return
    }
    if (this.job) {
      this.say(texts.busy)
      return
    }
    this.gesture = new Gesture(gesture.tool)
    this.start(wanted, 'build')
  }

  private start(wanted: readonly Wanted[], purpose: Purpose): void {
    const { session } = this
    this.result = null
    const place = this.place()
    const work = new Work(wanted, {
      judge: (wanted) => judge(wanted, place),
      edit: ({ x, y, z, block }) =>
        session.edit(x, y, z, block, performance.now()) ? (session.edits.waiting.at(-1)?.seq ?? null) : null,
    })
    this.job = { work, purpose }
  }

  private place(): Place {
    const { body, session, avatars, interaction, world } = this
    return {
      blocks: world,
      replaces: this.replaces,
      isPending: (x, y, z) => session.edits.waiting.some((edit) => edit.x === x && edit.y === y && edit.z === z),
      mayBuild: (x, y, z) => session.claims.at(x, y, z)?.build ?? true,
      isInReach: (x, y, z) => isInReach([body.x, body.y + EYE, body.z], interaction.reach - REACH_MARGIN, x, y, z),
      isOccupied: (x, y, z) =>
        bodyTouchesBlock(body.x, body.y, body.z, x, y, z) ||
        avatars.anyTouches((ax, ay, az) => bodyTouchesBlock(ax, ay, az, x, y, z)),
    }
  }

  /** Stops the work; what was not undone or redone can be later. */
  private stop(): void {
    const { job, stack } = this
    if (!job) return
    const left = job.work.left.map(({ x, y, z, block, instead = AIR }) => ({ x, y, z, before: instead, after: block }))
    if (job.purpose === 'undo') stack.pushUndo(inverseOf(left))
    if (job.purpose === 'redo') stack.pushRedo(left)
    job.work.stop()
  }

  private finish(now: number): void {
    const { job, stack } = this
    this.job = null
    if (!job) return
    const { work, purpose } = job
    if (purpose === 'build') stack.add(work.changes)
    if (purpose === 'undo') stack.pushRedo(inverseOf(work.changes))
    if (purpose === 'redo') stack.pushUndo(work.changes)
    this.say(this.resultOf(work, purpose), now)
    this.updateDialog()
    if (this.undoNext) this.undo()
    this.undoNext = false
  }

  private resultOf(work: Work, purpose: Purpose): string {
    const { changes, skipped, refused } = work
    const removes = changes.length > 0 && changes.every(({ after }) => after === AIR)
    const parts = [texts.results[purpose === 'build' && removes ? 'remove' : purpose](changes.length)]
    if (skipped > 0) parts.push(purpose === 'build' ? texts.leftOut(skipped) : texts.leftAlone(skipped))
    if (refused > 0) parts.push(texts.refused(refused, refusalMessage(work.refusal)))
    return parts.join(' ')
  }

  private save(): void {
    if (!this.copy) return
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([encodeBlueprint(this.copy)], { type: 'application/json' }))
    link.download = `blueprint-${this.copy.sides.join('x')}.json`
    link.click()
    URL.revokeObjectURL(link.href)
  }

  private async openFile(file: File): Promise<void> {
    try {
      // decodeBlueprint reports files that are too large
      this.copy = decodeBlueprint(await file.slice(0, MAX_FILE + 1).text())
      this.shown = ''
      this.begin('paste')
    } catch (reason) {
      this.hud.messages.toast(reason instanceof Error ? reason.message : String(reason))
    }
  }

  private updateDialog(): void {
    const { undo, redo } = this.stack.sizes
    this.dialog.show({ undo: undo > 0, redo: redo > 0, copied: this.copy ? countBlocks(this.copy) : 0 })
  }

  private say(text: string, now = performance.now()): void {
    this.result = { text, until: now + RESULT_MS }
    this.shownAt = 0
  }

  private showGhost(now: number): void {
    const { gesture, job } = this
    const { selectedBlock } = this.store
    const key = gesture
      ? [gesture.tool, gesture.stage, gesture.corners?.join(), selectedBlock, this.copy?.sides.join()].join(' ')
      : job
        ? `work ${Math.floor(now / SHOWN_EVERY_MS)}`
        : ''
    if (key === this.shown) return
    this.shown = key
    const wanted = gesture ? this.wantedBy(gesture) : (job?.work.left ?? [])
    this.ghosts = typeof wanted === 'string' ? [] : wanted
    this.ghost.show(gesture?.tool === 'copy' ? this.ghosts.map((at) => ({ ...at, block: COPIED })) : this.ghosts)
  }

  private status(now: number): BuildStatus | null {
    const { gesture, job, result } = this
    const news = result && now < result.until ? result.text : ''
    if (gesture)
      return {
        title: this.titleOf(gesture),
        note: news || this.noteOf(gesture),
        buttons: buttonsOf(gesture),
        confirm: confirmOf(gesture.tool),
      }
    if (job) return this.statusOf(job.work, job.purpose)
    if (!news) return null
    const undoable = this.stack.sizes.undo > 0
    const key = inputIs('touch') ? undefined : this.store.settings.bindings.undo[0]
    const note = undoable && key ? texts.takesBack(commonTexts.key(key)) : ''
    return { title: news, note, buttons: undoable ? ['undo'] : [] }
  }

  private statusOf(work: Work, purpose: Purpose): BuildStatus {
    const { done, total, stuck, left } = work
    const removes = left.length > 0 && left.every(({ block }) => block === AIR)
    const stop = inputIs('touch') ? '' : texts.escStops
    return {
      title: texts.progress[purpose === 'build' && removes ? 'remove' : purpose](done, total),
      note: stuck ? `${texts.goNearer(left.length)} ${stop}` : stop,
      progress: { done, total },
      buttons: ['cancel'],
    }
  }

  private titleOf(gesture: Gesture): string {
    const name = texts.tools[gesture.tool]
    if (!gesture.corners) return name
    if (gesture.tool === 'fill' || gesture.tool === 'paste') return `${name}: ${texts.blocks(this.ghosts.length)}`
    const sides = sidesOf(boxBetween(...gesture.corners)).join(' × ')
    return this.ghosts.length > 0 ? `${name}: ${sides}, ${texts.blocks(this.ghosts.length)}` : `${name}: ${sides}`
  }

  private noteOf(gesture: Gesture): string {
    const wanted = gesture.corners && this.ghosts.length === 0 ? this.wantedBy(gesture) : ''
    if (typeof wanted === 'string' && wanted) return wanted
    const note = inputIs('touch') ? touchNoteFor(gesture) : noteFor(gesture)
    if (gesture.stage !== 'confirm' || gesture.tool === 'copy') return note
    const { isInReach } = this.place()
    const far = this.ghosts.filter(({ x, y, z }) => !isInReach(x, y, z)).length
    return far > 0 ? `${note} ${texts.walkAlong(far)}` : note
  }
}

/** Returns what a gesture waits for from a player with mouse and keys, or a gamepad. */
function noteFor({ tool, stage }: Gesture): string {
  const words = inputIs('gamepad') ? texts.gamepad : texts
  if (stage === 'second') return words.secondCorner
  if (stage === 'confirm') {
    const click = tool === 'copy' ? words.clickToCopy : tool === 'clear' ? words.clickToRemove : words.clickToBuild
    return `${click} ${tool === 'paste' ? words.wheelTurns : words.wheelMoves}`
  }
  return tool === 'paste' ? words.pasteAt : tool === 'fill' ? words.fillTo : words.firstCorner
}

/** Returns what a gesture waits for from a player with fingers, who has buttons for the rest. */
function touchNoteFor({ tool, stage }: Gesture): string {
  if (stage === 'confirm') return ''
  if (stage === 'second') return texts.tapSecond
  return tool === 'paste' ? texts.tapPaste : tool === 'fill' ? texts.tapFill : texts.tapFirst
}

function inputIs(kind: InputKind): boolean {
  return document.documentElement.dataset.input === kind
}

/** Returns what the button says that agrees to a gesture. */
function confirmOf(tool: Tool): string {
  if (tool === 'clear') return texts.remove
  return tool === 'copy' || tool === 'paste' ? texts.tools[tool] : texts.confirm
}

/** The copied blocks are shown in the colour of ice. */
const COPIED = 21

function shapeOf(tool: Tool): Shape {
  return tool === 'line' || tool === 'wall' || tool === 'hollow' ? tool : 'box'
}

function buttonsOf({ tool, stage }: Gesture): BuildStatus['buttons'] {
  const adjust = tool === 'paste' ? (['turn'] as const) : stage === 'confirm' ? (['raise'] as const) : []
  return [...adjust, ...(stage === 'confirm' ? (['confirm'] as const) : []), 'cancel']
}

function changesOf(step: Step): Wanted[] {
  return step.map(({ x, y, z, before, after }) => ({ x, y, z, block: after, instead: before }))
}
