// The claims around the player: land that players keep for themselves and those whom they trust. The server enforces them; here they are
// known so that a refusal is shown at once.

/** The blocks from min to max, both included. */
export interface Box {
  min: readonly [x: number, y: number, z: number]
  max: readonly [x: number, y: number, z: number]
}

export interface Claim extends Box {
  /** The name of the owner. */
  owner: string
  name: string
  /** The player is its owner or a member. */
  member?: boolean
  /** The player may build in it. */
  build?: boolean
  /** The player may enter it. */
  enter?: boolean
}

/** The limits of a claim, in blocks. */
export const MIN_SIDE = 4
export const MAX_SIDE = 512

const AXES = [0, 1, 2] as const

export function contains({ min, max }: Box, x: number, y: number, z: number): boolean {
  const at = [Math.floor(x), Math.floor(y), Math.floor(z)] as const
  return AXES.every((i) => at[i] >= min[i] && at[i] <= max[i])
}

export function overlaps(a: Box, b: Box): boolean {
  return AXES.every((i) => a.min[i] <= b.max[i] && b.min[i] <= a.max[i])
}

/** Returns whole columns of blocks between two corners. */
export function columnsBetween(a: { x: number; z: number }, b: { x: number; z: number }, height: number): Box {
  return {
    min: [Math.min(a.x, b.x), 0, Math.min(a.z, b.z)],
    max: [Math.max(a.x, b.x), height - 1, Math.max(a.z, b.z)],
  }
}

/** Returns the owner of a claim, or null if it is the player's own; name is theirs. */
export function otherOwner({ owner, member }: Claim, name: string): string | null {
  return member && owner === name ? null : owner
}

export class Claims {
  private claims: readonly Claim[] = []
  /** The number of times that the list has changed. */
  version = 0

  get list(): readonly Claim[] {
    return this.claims
  }

  set(claims: readonly Claim[]): void {
    this.claims = claims
    this.version++
  }

  at(x: number, y: number, z: number): Claim | null {
    return this.claims.find((claim) => contains(claim, x, y, z)) ?? null
  }

  mayBuild(x: number, y: number, z: number): boolean {
    return this.at(x, y, z)?.build ?? true
  }

  /** Returns the claim that the player may not enter by a step, or null. Who is in it already may walk on. */
  keepingOut(from: { x: number; y: number; z: number }, to: { x: number; y: number; z: number }): Claim | null {
    const claim = this.at(to.x, to.y, to.z)
    return claim && !claim.enter && !contains(claim, from.x, from.y, from.z) ? claim : null
  }
}
