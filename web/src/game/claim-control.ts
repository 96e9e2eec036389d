// Claims: shows their borders and whose they are, refuses edits in those of others, and lets the player choose two corners of a new one.

import type { Hud } from '../hud/hud'
import type { Session } from '../net/session'
import type { BlockInteraction } from '../player/block-interaction'
import type { Body } from '../player/body'
import type { ClaimWalls, ShownBox } from '../render/claim-walls'
import { laterTexts } from '../text/later-texts'
import { texts } from '../text/texts'
import { contains, otherOwner, type Claim } from '../world/claims'
import type { World } from '../world/world'
import type { ClaimDraft } from './claim-draft'
import type { System } from './frame-loop'
import type { Store } from './store'

const OWN = [0.56, 0.83, 0.35] as const
const OPEN = [0.55, 0.8, 0.95] as const
const FOREIGN = [1, 0.72, 0.3] as const
const CLOSED = [1, 0.4, 0.35] as const
const CHOSEN = [1, 1, 1] as const

export class ClaimControl implements System {
  private far = false
  private walls: ClaimWalls | null = null // loaded when there are claims to show
  private shown = '' // what the walls show
  private inside: Claim | null = null
  /** The claim that is being chosen. */
  private draft: ClaimDraft | null = null

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
    return this.draft?.choosing ?? ''
  }

  toggleFar(): void {
    this.far = !this.far
    this.walls?.setFar(this.far)
    this.hud.messages.toast(this.far ? laterTexts.claimsFar : laterTexts.claimsNear)
  }

  /** Begins to choose a claim if the command has no corners; returns false if it is not such a command. */
  begin(command: string): boolean {
    const [word, name = '', ...rest] = command.split(/\s+/)
    if (word?.toLowerCase() !== 'claim' || name.includes(',') || rest.length > 0) return false
    if (!this.session.mayUse('claim')) return false // the server says why
    const { store, world, body, session, hud, interaction } = this
    void import('./claim-draft').then(
      ({ ClaimDraft }) => (this.draft = new ClaimDraft(store, name, world, body, session, hud, interaction)),
      () => hud.messages.toast(texts.partMissing),
    )
    return true
  }

  /** Handles a click while a claim is chosen; returns false if none is. */
  click(button: number): boolean {
    if (!this.draft) return false
    if (!this.draft.click(button)) this.end()
    return true
  }

  /** Reports whether the player may change a block, and says so if not. */
  mayEdit(x: number, y: number, z: number): boolean {
    const claim = this.session.claims.at(x, y, z)
    if (!claim || claim.build) return true
    this.hud.messages.toast(laterTexts.inClaim(this.otherOwner(claim)))
    return false
  }

  /** Reports whether a claim keeps the player from a step, and says so if it does. */
  keepsOut(from: Body | { x: number; y: number; z: number }, to: Body): boolean {
    const claim = this.session.claims.keepingOut(from, to)
    if (claim) this.hud.messages.toast(laterTexts.membersOnly(this.otherOwner(claim)))
    return claim !== null
  }

  update(): void {
    if (!this.store.inWorld) {
      this.end()
      this.inside = null
    }
    this.draft?.update()
    this.showPlace()
    this.showWalls()
  }

  /** Gives up choosing a claim. */
  end(): void {
    if (!this.draft) return
    this.draft = null
    this.hud.claimLine.setHint(null)
  }

  /** Shows whose claim the player enters or leaves. */
  private showPlace(): void {
    const { body, session, inside } = this
    const now = this.store.inWorld ? session.claims.at(body.x, body.y, body.z) : null
    this.inside = now
    if (now?.owner === inside?.owner && now?.name === inside?.name) return
    if (now) this.hud.claimLine.show(laterTexts.claimEntered(this.otherOwner(now), now.name), noteOf(now))
    else if (inside && !contains(inside, body.x, body.y, body.z))
      this.hud.claimLine.show(laterTexts.claimLeft(this.otherOwner(inside)), inside.name)
  }

  private otherOwner(claim: Claim): string | null {
    return otherOwner(claim, this.session.registeredName)
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
    if (box) boxes.push({ ...box, colour: draft.refused ? CLOSED : CHOSEN, always: true })
    if (walls) walls.show(boxes, world.height)
    else if (boxes.length > 0)
      void this.loadWalls().then((loaded) => {
        this.walls = loaded
        loaded.setFar(this.far)
        this.shown = '' // they are shown in the next frame
      })
  }
}

function colourOf({ member, build, enter }: Claim): readonly [number, number, number] {
  if (member) return OWN
  if (!enter) return CLOSED
  return build ? OPEN : FOREIGN
}

function noteOf({ member, build }: Claim): string {
  if (member) return laterTexts.mayBuild
  return build ? laterTexts.mayBuildToo : laterTexts.membersBuild
}
