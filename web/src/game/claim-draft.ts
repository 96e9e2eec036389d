// A claim that the player chooses by two clicks.

import { textForInput } from '../hud/help'
import type { Hud } from '../hud/hud'
import type { Session } from '../net/session'
import { LEFT, RIGHT, type BlockInteraction } from '../player/block-interaction'
import { EYE, type Body } from '../player/body'
import { castRay } from '../player/ray'
import { laterTexts } from '../text/later-texts'
import { boxesOf, isAimable } from '../world/blocks'
import { MAX_SIDE, MIN_SIDE, columnsBetween, otherOwner, overlaps, type Box } from '../world/claims'
import type { World } from '../world/world'
import type { Store } from './store'

const texts = laterTexts.claim

/** How far away a corner may be, in blocks. */
const REACH = 64

interface Corner {
  x: number
  z: number
}

export class ClaimDraft {
  private first: Corner | null = null
  /** What would be claimed now. */
  box: Box | null = null

  constructor(
    private readonly store: Pick<Store, 'settings'>,
    private readonly name: string,
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Session,
    private readonly hud: Hud,
    private readonly interaction: Pick<BlockInteraction, 'ahead'>,
  ) {}

  get choosing(): 'first' | 'second' {
    return this.first ? 'second' : 'first'
  }

  /** The box cannot be claimed. */
  get refused(): boolean {
    return this.first !== null && this.box !== null && this.problemOf(this.box) !== null
  }

  /** Handles a click; returns false if nothing is left to choose. */
  click(button: number): boolean {
    if (button !== LEFT) return button !== RIGHT
    const corner = this.aim()
    if (!corner) {
      this.hud.messages.toast(laterTexts.aimAtBlock)
      return true
    }
    if (!this.first) {
      this.first = corner
      return true
    }
    const box = columnsBetween(this.first, corner, this.world.height)
    const problem = this.problemOf(box)
    if (problem) {
      this.hud.messages.toast(problem)
      return true
    }
    const { min, max } = box
    this.session.sendCommand(`claim ${min[0]},${min[2]} ${max[0]},${max[2]} ${this.name}`.trim())
    return false
  }

  update(): void {
    const { name, first, hud } = this
    const { settings } = this.store
    const what = texts.named(name)
    const corner = this.aim()
    if (!first) {
      this.box = corner && columnsBetween(corner, corner, this.world.height)
      hud.claimLine.setHint(what, textForInput(texts.first, settings.bindings))
      return
    }
    if (corner) this.box = columnsBetween(first, corner, this.world.height)
    const [width, length] = this.box ? sidesOf(this.box) : [0, 0]
    const problem = this.box && this.problemOf(this.box)
    hud.claimLine.setHint(texts.sides(what, width, length), problem ?? textForInput(texts.second, settings.bindings))
  }

  /** Returns why a box cannot be claimed, as far as is known here, or null. */
  private problemOf(box: Box): string | null {
    const sides = sidesOf(box)
    if (Math.min(...sides) < MIN_SIDE) return texts.tooSmall(MIN_SIDE)
    if (Math.max(...sides) > MAX_SIDE) return texts.tooLarge(MAX_SIDE)
    const other = this.session.claims.list.find((claim) => overlaps(claim, box))
    return other ? texts.overlaps(otherOwner(other, this.session.registeredName)) : null
  }

  private aim(): Corner | null {
    const { x, y, z } = this.body
    return castRay(this.world, [x, y + EYE, z], this.interaction.ahead(), REACH, isAimable, boxesOf)
  }
}

function sidesOf({ min, max }: Box): [width: number, length: number] {
  return [max[0] - min[0] + 1, max[2] - min[2] + 1]
}
