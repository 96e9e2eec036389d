// Claims: shows their borders and whose they are, refuses edits in those of others, and lets the player choose two corners of a new one.

import type { Hud } from '../hud/hud'
import type { Session } from '../net/session'
import { LEFT, RIGHT, type BlockInteraction } from '../player/block-interaction'
import { EYE, type Body } from '../player/body'
import { castRay } from '../player/ray'
import type { ClaimWalls, ShownBox } from '../render/claim-walls'
import { boxesOf, isAimable } from '../world/blocks'
import { MAX_SIDE, MIN_SIDE, columnsBetween, contains, overlaps, type Box, type Claim } from '../world/claims'
import type { World } from '../world/world'
import type { System } from './frame-loop'
import type { Store } from './store'

/** How far away a corner may be, in blocks. */
const REACH = 64
const OWN = [0.56, 0.83, 0.35] as const
const OPEN = [0.55, 0.8, 0.95] as const
const FOREIGN = [1, 0.72, 0.3] as const
const CLOSED = [1, 0.4, 0.35] as const
const CHOSEN = [1, 1, 1] as const

interface Corner {
  x: number
  z: number
}

export class ClaimControl implements System {
  private far = false
  private walls: ClaimWalls | null = null // loaded when there are claims to show
  private shown = '' // what the walls show
  private inside: Claim | null = null
  /** The claim that is being chosen. */
  private draft: { name: string; first: Corner | null; box: Box | null } | null = null

  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Session,
    private readonly hud: Hud,
    private readonly loadWalls: () => Promise<ClaimWalls>,
    private readonly interaction: Pick<BlockInteraction, 'ahead'>,
  ) {}

  /** The claim that the player is in. */
  get here(): Claim | null {
    return this.inside
  }

  get choosing(): '' | 'first' | 'second' {
    return this.draft ? (this.draft.first ? 'second' : 'first') : ''
  }

  toggleFar(): void {
    this.far = !this.far
    this.walls?.setFar(this.far)
    this.hud.messages.toast(this.far ? 'Claims are shown from afar.' : 'Claims are shown when you are near.')
  }

  /** Begins to choose a claim if the command has no corners; returns false if it is not such a command. */
  begin(command: string): boolean {
    const [word, name = '', ...rest] = command.split(/\s+/)
    if (word?.toLowerCase() !== 'claim' || name.includes(',') || rest.length > 0) return false
    if (!this.session.mayUse('claim')) return false // the server says why
    this.draft = { name, first: null, box: null }
    return true
  }

  /** Handles a click while a claim is chosen; returns false if none is. */
  click(button: number): boolean {
    const { draft } = this
    if (!draft) return false
    if (button === RIGHT) this.end()
    if (button !== LEFT) return true
    const corner = this.aim()
    if (!corner) {
      this.hud.messages.toast('Aim at a block.')
      return true
    }
    if (!draft.first) {
      draft.first = corner
      return true
    }
    const box = columnsBetween(draft.first, corner, this.world.height)
    const problem = this.problemOf(box)
    if (problem) {
      this.hud.messages.toast(problem)
      return true
    }
    const { min, max } = box
    this.session.sendCommand(`claim ${min[0]},${min[2]} ${max[0]},${max[2]} ${draft.name}`.trim())
    this.end()
    return true
  }

  /** Reports whether the player may change a block, and says so if not. */
  mayEdit(x: number, y: number, z: number): boolean {
    const claim = this.session.claims.at(x, y, z)
    if (!claim || claim.build) return true
    this.hud.messages.toast(`This is ${this.titleOf(claim)}.`)
    return false
  }

  /** Reports whether a claim keeps the player from a step, and says so if it does. */
  keepsOut(from: Body | { x: number; y: number; z: number }, to: Body): boolean {
    const claim = this.session.claims.keepingOut(from, to)
    if (claim) this.hud.messages.toast(`Only members may enter ${this.titleOf(claim)}.`)
    return claim !== null
  }

  update(): void {
    if (!this.store.inWorld) {
      this.end()
      this.inside = null
    }
    this.updateDraft()
    this.showPlace()
    this.showWalls()
  }

  /** Gives up choosing a claim. */
  end(): void {
    if (!this.draft) return
    this.draft = null
    this.hud.claimLine.setHint(null)
  }

  private updateDraft(): void {
    const { draft, hud } = this
    if (!draft) return
    const what = draft.name ? `The claim ${draft.name}` : 'A new claim'
    if (!draft.first) {
      const corner = this.aim()
      draft.box = corner && columnsBetween(corner, corner, this.world.height)
      hud.claimLine.setHint(what, 'Click at one corner. Right click cancels.')
      return
    }
    const corner = this.aim()
    if (corner) draft.box = columnsBetween(draft.first, corner, this.world.height)
    const [width, length] = draft.box ? sidesOf(draft.box) : [0, 0]
    const problem = draft.box && this.problemOf(draft.box)
    hud.claimLine.setHint(`${what}: ${width} × ${length} blocks`, problem ?? 'Click at the opposite corner.')
  }

  /** Returns why a box cannot be claimed, as far as is known here, or null. */
  private problemOf(box: Box): string | null {
    const sides = sidesOf(box)
    if (Math.min(...sides) < MIN_SIDE) return `A claim is at least ${MIN_SIDE} blocks wide and long.`
    if (Math.max(...sides) > MAX_SIDE) return `A claim is at most ${MAX_SIDE} blocks wide and long.`
    const other = this.session.claims.list.find((claim) => overlaps(claim, box))
    return other ? `A part of that is ${this.titleOf(other)}.` : null
  }

  private aim(): Corner | null {
    const { x, y, z } = this.body
    return castRay(this.world, [x, y + EYE, z], this.interaction.ahead(), REACH, isAimable, boxesOf)
  }

  /** Shows whose claim the player enters or leaves. */
  private showPlace(): void {
    const { body, session, inside } = this
    const now = this.store.inWorld ? session.claims.at(body.x, body.y, body.z) : null
    this.inside = now
    if (now?.owner === inside?.owner && now?.name === inside?.name) return
    if (now) this.hud.claimLine.show(`${capital(this.titleOf(now))}: ${now.name}`, noteOf(now))
    else if (inside && !contains(inside, body.x, body.y, body.z))
      this.hud.claimLine.show(`You left ${this.titleOf(inside)}`, inside.name)
  }

  private titleOf({ owner, member }: Claim): string {
    return member && owner === this.session.registeredName ? 'your claim' : `${owner}’s claim`
  }

  private showWalls(): void {
    const { session, store, draft, walls, world } = this
    const box = draft?.box
    const shown = store.inWorld
      ? `${session.claims.version} ${world.height} ${box ? box.min.join() + box.max.join() : ''}`
      : ''
    if (shown === this.shown) return
    this.shown = shown
    const boxes: ShownBox[] = shown ? session.claims.list.map((claim) => ({ ...claim, colour: colourOf(claim) })) : []
    if (box) boxes.push({ ...box, colour: draft.first && this.problemOf(box) ? CLOSED : CHOSEN, always: true })
    if (walls) walls.show(boxes, world.height)
    else if (boxes.length > 0)
      void this.loadWalls().then((loaded) => {
        this.walls = loaded
        loaded.setFar(this.far)
        this.shown = '' // they are shown in the next frame
      })
  }
}

function sidesOf({ min, max }: Box): [width: number, length: number] {
  return [max[0] - min[0] + 1, max[2] - min[2] + 1]
}

function colourOf({ member, build, enter }: Claim): readonly [number, number, number] {
  if (member) return OWN
  if (!enter) return CLOSED
  return build ? OPEN : FOREIGN
}

function noteOf({ member, build }: Claim): string {
  if (member) return 'You may build here.'
  return build ? 'You may build here, too.' : 'Only members build here.'
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
