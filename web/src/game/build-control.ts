// The building tools: lets the player choose what to build, shows it before it is there, makes the edits, and takes them back.

import { decodeBlueprint, encodeBlueprint, MAX_FILE } from '../build/blueprint'
import { parseBuildCommand } from '../build/command'
import { copyBox, countBlocks, flipped, materialsOf, placed, turned, type Copy } from '../build/copy'
import { Gesture, type Stage, type Tool } from '../build/gesture'
import { isInReach, judge, type Place } from '../build/judge'
import { Pace } from '../build/pace'
import {
  BULK_MAX_BLOCKS,
  BULK_MAX_SIDE,
  MAX_BLOCKS,
  MAX_SIDE,
  besideFace,
  boxBetween,
  cornerInAir,
  hollowFrom,
  outlineOf,
  placesOf,
  problemOf,
  stateBetween,
  sidesOf,
  type Limits,
  type Shape,
} from '../build/shapes'
import { UndoStack, inverseOf, type Change, type Step } from '../build/undo-stack'
import { Work, type Wanted } from '../build/work'
import { BuildBar, type BuildStatus } from '../hud/build-bar'
import { BuildDialog } from '../hud/build-dialog'
import { keysOf } from '../hud/help'
import type { Hud } from '../hud/hud'
import type { InputKind } from '../input/kind'
import { RETRYABLE, refusalMessage } from '../net/messages'
import type { Session } from '../net/session'
import { LEFT, RIGHT, type BlockInteraction } from '../player/block-interaction'
import { EYE, bodyTouchesBlock, type Body } from '../player/body'
import { castRay, type Vector } from '../player/ray'
import type { Avatars } from '../render/avatars'
import { Ghost } from '../render/ghost'
import type { View } from '../render/view'
import { laterTexts } from '../text/later-texts'
import { texts as commonTexts } from '../text/texts'
import { AIR, KINDS, boxesOf, kindOf, isAimable, isDoor, isPlant, isReplaceable } from '../world/blocks'
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
  private corners: [Vector | null, Vector | null] = [null, null] // of commands
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
      mirror: () => this.flip(0),
      confirm: () => this.confirm(),
      undo: () => this.undo(),
      cancel: () => this.cancel(),
    })
    this.dialog = new BuildDialog({
      chosen: (tool) => this.begin(tool),
      undo: () => this.undo(),
      redo: () => this.redo(),
      save: () => this.save(),
      saveMaterials: () => this.saveMaterials(),
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
    const { gesture, job, stack } = this
    return {
      tool: gesture?.tool ?? '',
      stage: gesture?.stage ?? '',
      ghosts: this.ghost.count,
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

  /** Carries out a command of the chat, without its slashes. */
  command(line: string): void {
    const command = parseBuildCommand(line, blockNamed)
    if (command === null || typeof command === 'string') {
      this.hud.chat.addNotice(command === null ? texts.commands : texts.noBlock(command))
      return
    }
    const feet: Vector = [Math.floor(this.body.x), Math.floor(this.body.y), Math.floor(this.body.z)]
    switch (command.name) {
      case 'pos1':
      case 'pos2': {
        const number = command.name === 'pos1' ? 1 : 2
        const at = command.at ?? feet
        this.corners[number - 1] = at
        this.hud.chat.addNotice(texts.corner(number, at.join(' ')))
        return
      }
      case 'sphere':
      case 'shell': {
        const { name, block, radius } = command
        const corner = (by: number): Vector => [feet[0] + by, feet[1] + by, feet[2] + by]
        this.startAll(this.placesIn(name, corner(-radius), corner(radius), block))
        return
      }
      case 'undo':
        this.undo()
        return
      case 'redo':
        this.redo()
        return
      case 'stop':
        this.stop()
        return
      case 'turn':
        this.turn()
        return
      case 'flip':
        this.flip(command.axis)
        return
      case 'paste':
        this.startAll(this.pasteAt(feet))
        return
    }
    const [a, b] = this.gesture?.stage === 'confirm' && this.gesture.corners ? this.gesture.corners : this.corners
    if (!a || !b) {
      this.hud.chat.addNotice(texts.noCorners)
      return
    }
    const all = this.placesIn('box', a, b, command.name === 'fill' ? command.block : AIR)
    if (typeof all === 'string' || command.name === 'fill') {
      this.startAll(all)
      return
    }
    if (command.name === 'replace') {
      const { from, to } = command
      const there = all.map((at) => ({ ...at, block: to, instead: this.world.get(at.x, at.y, at.z) }))
      this.startAll(there.filter(({ instead }) => instead >= 0 && kindOf(instead).base === kindOf(from).base))
      return
    }
    this.copy = copyBox(this.world, boxBetween(a, b))
    this.updateDialog()
    this.say(texts.copiedNow(countBlocks(this.copy)))
    if (command.name === 'cut') this.startAll(all)
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
    if (edit.changes) {
      // one that was sent before the tools were reset belongs to no work
      if (!this.job?.work.committed(seq, ...edit.changes)) this.stack.add(edit.changes)
      return
    }
    const change: Change = { x, y, z, before, after }
    if (this.job?.work.committed(seq, change)) {
      this.pace.committed()
      return
    }
    if (before === after) return
    if (edit.cause) {
      this.stack.extend(change, edit.cause)
      this.updateDialog()
      return
    }
    const last = this.lastHandEdit
    const near = last && seq === last.seq + 1 && x === last.x && z === last.z
    // a plant that broke together with the block below it; the other half of a door
    const plant = near && isPlant(before) && after === AIR && last.block === AIR && y > last.y
    const door = isDoor(before) || isDoor(after)
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
    this.corners = [null, null]
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

  private flip(axis: 0 | 1 | 2): void {
    if (this.copy) this.copy = flipped(this.copy, axis)
    this.shown = ''
  }

  /** What may be built or copied at once. */
  private limits(): Limits {
    const { bulk } = this.session
    if (bulk === 0) return { blocks: MAX_BLOCKS, side: MAX_SIDE }
    return { blocks: Math.min(bulk, BULK_MAX_BLOCKS), side: BULK_MAX_SIDE }
  }

  /** Returns the places of a shape, with what they are to become, or why it cannot be built. */
  private placesIn(shape: Shape, a: Vector, b: Vector, block: number): Wanted[] | string {
    const { height } = this.world
    const inWorld = (y: number) => y >= 0 && y < height
    return (
      problemOf(shape, a, b, this.limits()) ??
      placesOf(shape, a, b)
        .filter(([, y]) => inWorld(y))
        .map(([x, y, z]) => ({ x, y, z, block }))
    )
  }

  private pasteAt(middle: Vector): Wanted[] | string {
    if (!this.copy) return texts.noCopy
    const wanted = placed(this.copy, middle)
    const { blocks } = this.limits()
    return wanted.length > blocks ? texts.maxBlocks(blocks) : wanted
  }

  /** Builds all that a command wants, whatever is there, unless that is not possible. */
  private startAll(wanted: readonly Wanted[] | string): void {
    if (typeof wanted === 'string' || this.job) this.say(typeof wanted === 'string' ? wanted : texts.busy)
    else {
      this.leaveTool()
      this.start(wanted, 'build', true)
    }
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
  private wantedBy(gesture: Gesture): Wanted[] | string {
    const { tool, corners, stage } = gesture
    if (!corners) return []
    const [a, b] = corners
    const block = this.blockOf(gesture)
    const all = (places: Vector[]): Wanted[] => places.map(([x, y, z]) => ({ x, y, z, block }))
    if (tool === 'paste') return this.pasteAt(a)
    if (tool === 'fill') {
      if (stage !== 'confirm') return all([a])
      const places = hollowFrom(a, (x, y, z) => isReplaceable(this.world.get(x, y, z)))
      return places ? all(places) : texts.notHollow
    }
    const shape = shapeOf(tool)
    return this.placesIn(shape, a, b, block)
  }

  /** Returns the block that a gesture would place, turned as the player looks. */
  private blockOf({ tool, corners }: Gesture): number {
    const { selectedBlock } = this.store
    if (tool === 'clear') return AIR
    if (!corners || tool === 'copy' || tool === 'paste') return selectedBlock
    return stateBetween(tool === 'fill' ? null : tool, ...corners, selectedBlock, this.interaction.ahead())
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

  private start(wanted: readonly Wanted[], purpose: Purpose, replaces = this.replaces): void {
    const { session } = this
    this.result = null
    const place = { ...this.place(), replaces }
    const editBulk = (some: readonly Wanted[]) =>
      session.editBulk(
        some.map(({ x, y, z, block }) => ({ x, y, z, before: this.world.get(x, y, z), after: block })),
        performance.now(),
      )
    const work = new Work(wanted, {
      judge: (wanted) => judge(wanted, place),
      edit: ({ x, y, z, block }) =>
        session.edit(x, y, z, block, performance.now()) ? (session.edits.waiting.at(-1)?.seq ?? null) : null,
      ...(session.bulk > 0 && { editBulk }),
      mayRetry: (refusal) => RETRYABLE.has(refusal),
    })
    this.job = { work, purpose }
  }

  private place(): Place {
    const { body, session, avatars, interaction, world } = this
    return {
      blocks: world,
      replaces: this.replaces,
      isPending: (x, y, z) => session.edits.isUnderway(x, y, z),
      mayBuild: (x, y, z) => session.claims.mayBuild(x, y, z),
      // bulk edits reach as far as the player sees
      isInReach: (x, y, z) =>
        session.bulk > 0 || isInReach([body.x, body.y + EYE, body.z], interaction.reach - REACH_MARGIN, x, y, z),
      isOccupied: (x, y, z, block) =>
        bodyTouchesBlock(body, x, y, z, block) || avatars.anyTouches((feet) => bodyTouchesBlock(feet, x, y, z, block)),
    }
  }

  /** Stops the work; what was not undone or redone can be later. */
  private stop(): void {
    const { job } = this
    if (!job) return
    this.putBack(job.purpose, job.work.left)
    job.work.stop()
  }

  /** Keeps what was not undone or redone, so that it can be later. */
  private putBack(purpose: Purpose, wanted: readonly Wanted[]): void {
    const step = wanted.map(({ x, y, z, block, instead = AIR }) => ({ x, y, z, before: instead, after: block }))
    if (purpose === 'undo') this.stack.pushUndo(inverseOf(step))
    if (purpose === 'redo') this.stack.pushRedo(step)
  }

  private finish(now: number): void {
    const { job, stack } = this
    this.job = null
    if (!job) return
    const { work, purpose } = job
    if (purpose === 'build') stack.add(work.changes)
    if (purpose === 'undo') stack.pushRedo(inverseOf(work.changes))
    if (purpose === 'redo') stack.pushUndo(work.changes)
    this.putBack(purpose, work.missed)
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
    if (purpose !== 'build' && work.missed.length > 0) parts.push(texts.kept[purpose])
    return parts.join(' ')
  }

  private save(): void {
    if (!this.copy) return
    download(`blueprint-${this.copy.sides.join('x')}.json`, 'application/json', encodeBlueprint(this.copy))
  }

  private saveMaterials(): void {
    if (!this.copy) return
    const table = materialsOf(this.copy, (block) => commonTexts.block(kindOf(block).name))
    download(`materials-${this.copy.sides.join('x')}.csv`, 'text/csv', table)
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
    const asked = gesture
      ? [gesture.tool, gesture.stage, gesture.corners?.join(), this.blockOf(gesture), this.copy?.sides.join()]
      : []
    const key = [...asked, job ? `work ${Math.floor(now / SHOWN_EVERY_MS)}` : ''].join(' ')
    if (key === this.shown) return
    this.shown = key
    const left = job?.work.left ?? []
    const wanted = gesture ? this.wantedBy(gesture) : left
    this.ghosts = typeof wanted === 'string' ? [] : wanted
    const copied = gesture?.tool === 'copy' ? this.ghosts.map((at) => ({ ...at, block: COPIED })) : this.ghosts
    const all = gesture ? [...copied, ...left] : copied
    this.ghost.show(all.length > MAX_BLOCKS ? outlineOf(all) : all)
  }

  private status(now: number): BuildStatus | null {
    const { gesture, job, result } = this
    const news = result && now < result.until ? result.text : ''
    const work = job && statusOf(job.work, job.purpose)
    if (gesture)
      return {
        title: this.titleOf(gesture),
        note: [news || this.noteOf(gesture), work && `${work.title}. ${work.note}`].filter(Boolean).join(' '),
        progress: work?.progress,
        buttons: buttonsOf(gesture),
        confirm: confirmOf(gesture.tool),
      }
    if (work) {
      const stop = inputIs('mouse') ? texts.escStops : ''
      return { ...work, note: `${work.note} ${stop}`.trim(), buttons: ['cancel'] }
    }
    if (!news) return null
    const undoable = this.stack.sizes.undo > 0
    const key = inputIs('mouse') ? this.store.settings.bindings.undo[0] : undefined
    const note = undoable && key ? texts.takesBack(commonTexts.key(key)) : ''
    return { title: news, note, buttons: undoable ? ['undo'] : [] }
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
    const note = inputIs('touch') ? touchNoteFor(gesture) : keysOf(noteFor(gesture), this.store.settings.bindings)
    if (gesture.stage !== 'confirm' || gesture.tool === 'copy') return note
    const { isInReach } = this.place()
    const far = this.ghosts.filter(({ x, y, z }) => !isInReach(x, y, z)).length
    return far > 0 ? `${note} ${texts.walkAlong(far)}` : note
  }
}

/** Returns how far work is, and that its player must go nearer if nothing of it is within reach. */
function statusOf({ done, total, stuck, left }: Work, purpose: Purpose): Omit<BuildStatus, 'buttons'> {
  const removes = left.length > 0 && left.every(({ block }) => block === AIR)
  return {
    title: texts.progress[purpose === 'build' && removes ? 'remove' : purpose](done, total),
    note: stuck ? texts.goNearer(left.length) : '',
    progress: { done, total },
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

/** Returns the block with a name, in English or in the language of the page, or an id; -1 if there is none. */
function blockNamed(name: string): number {
  if (name === 'air') return AIR
  const id = KINDS.findIndex(
    (kind, i) =>
      kind.placeable &&
      kind.base === i &&
      (kind.name.toLowerCase() === name || commonTexts.block(kind.name).toLowerCase() === name),
  )
  const number = Number(name)
  return id >= 0 || !Number.isInteger(number) || !kindOf(number).placeable ? id : number
}

function download(name: string, type: string, text: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

/** The copied blocks are shown in the colour of ice. */
const COPIED = 21

function shapeOf(tool: Tool): Shape {
  return tool === 'fill' || tool === 'clear' || tool === 'copy' || tool === 'paste' ? 'box' : tool
}

function buttonsOf({ tool, stage }: Gesture): BuildStatus['buttons'] {
  const adjust = tool === 'paste' ? (['turn', 'mirror'] as const) : stage === 'confirm' ? (['raise'] as const) : []
  return [...adjust, ...(stage === 'confirm' ? (['confirm'] as const) : []), 'cancel']
}

function changesOf(step: Step): Wanted[] {
  return step.map(({ x, y, z, before, after }) => ({ x, y, z, block: after, instead: before }))
}
