// The protocol's codes in words for players.

const REFUSALS: Record<string, string> = {
  out_of_world: 'The world ends there.',
  out_of_reach: 'That is too far away.',
  unknown_block: 'This world does not know that block.',
  unbreakable: 'That cannot be broken.',
  not_placeable: 'That cannot be placed.',
  inside_player: 'Somebody stands there.',
  rate: 'Not so fast.',
  stale: 'That edit came too late.',
  not_loaded: 'That land is still loading.',
  unavailable: 'That land is not reachable just now.',
  quarantined: 'That land is closed until it is mended.',
}

const DENIALS: Record<string, string> = {
  unknown_player: 'That player is not here any more.',
  behind_block: 'Something stands between you.',
  unavailable: 'That did not get through just now.',
}

/** Why a hit or a gift did not come about. */
export function denialMessage(code: string): string {
  return DENIALS[code] ?? REFUSALS[code] ?? `The world refused that (${code}).`
}

/** Refusals that pass: the same edit may be sent again a little later. */
export const RETRYABLE = new Set(['not_loaded', 'unavailable', 'rate'])

/** Refusals made without a look at the block: what they say stands there is not to be believed. */
export const BLOCK_UNKNOWN = new Set(['not_loaded', 'unavailable', 'quarantined', 'out_of_world'])

export function refusalMessage(code: string): string {
  return REFUSALS[code] ?? `The world refused that (${code}).`
}

const FAILURES: Record<string, string> = {
  bad_name: 'A name has 1 to 20 letters, digits, _ or -.',
  bad_key: 'Your key is damaged. Play as a guest, or clear this page’s data to get a new one.',
  bad_signature: 'The world could not verify your key.',
  wrong_version: 'This page is older or newer than the world. Reload it.',
  no_guests: 'This world welcomes only players with a key. Untick “Play as a guest”.',
  name_taken: 'A guest of that name is playing already. Choose another name.',
  replaced: 'You joined from somewhere else, so this window left the world.',
  full: 'This node is full. Try again in a while, or another address of this world.',
}

/** Failures after which trying again by itself cannot help. */
const FINAL = new Set(['bad_name', 'bad_key', 'bad_signature', 'wrong_version', 'no_guests', 'name_taken', 'replaced'])

export function failureMessage(code: string, message: string): string {
  return FAILURES[code] ?? message ?? `The world closed the connection (${code}).`
}

export function isFinal(code: string): boolean {
  return FINAL.has(code)
}

const CORRECTIONS: Record<string, string> = {
  not_finite: 'You got lost for a moment.',
  out_of_world: 'The world ends here.',
  too_fast: 'Easy: that was faster than the world allows.',
}

export function correctionMessage(reason: string): string | null {
  return CORRECTIONS[reason] ?? null
}
