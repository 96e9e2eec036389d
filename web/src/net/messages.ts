// Texts for the protocol's error codes, as players see them.

const REFUSALS: Record<string, string> = {
  out_of_world: 'The world ends there.',
  out_of_reach: 'That is too far away.',
  unknown_block: 'This world does not have that block yet.',
  unbreakable: 'That block cannot be broken.',
  not_placeable: 'That block cannot be placed.',
  inside_player: 'A player is standing there.',
  rate: 'Too many edits at once.',
  stale: 'That edit came too late.',
  not_loaded: 'This area is still loading.',
  unavailable: 'This area cannot be reached right now.',
  quarantined: 'This area is locked for repair.',
  not_allowed: 'You may not build here.',
  outside_border: 'That is outside the border of the world.',
  claimed: 'This land is claimed by another player.',
  unsigned: 'The world could not verify that this edit is yours. Reload this page.',
}

const DENIALS: Record<string, string> = {
  unknown_player: 'That player is no longer here.',
  behind_block: 'There is a block in the way.',
  unavailable: 'That did not go through. Try again.',
}

/** Returns why a hit or a gift was denied. */
export function denialMessage(code: string): string {
  return DENIALS[code] ?? REFUSALS[code] ?? `The world refused that (${code}).`
}

/** Temporary refusals: the same edit may be sent again later. */
export const RETRYABLE = new Set(['not_loaded', 'unavailable', 'rate'])

/** Refusals decided without reading the block: their block field is not valid. */
export const WITHOUT_BLOCK = new Set(['not_loaded', 'unavailable', 'quarantined', 'out_of_world', 'unsigned'])

export function refusalMessage(code: string): string {
  return REFUSALS[code] ?? `The world refused that (${code}).`
}

const FAILURES: Record<string, string> = {
  bad_name: 'Use 1–20 letters, digits, _ or -',
  bad_key: 'Your key is damaged. Play as a guest, or clear this page’s data to get a new one.',
  bad_signature: 'The world could not verify your key.',
  wrong_version: 'This page is older or newer than the world. Reload it.',
  no_guests: 'Only players with a key can join this world. Untick “Play as a guest”.',
  replaced: 'You joined from somewhere else, so this window was disconnected.',
  full: 'This node is full. Try again later, or use another address of this world.',
}

/** Failures that a retry cannot fix. */
const FINAL = new Set([
  'bad_name',
  'bad_key',
  'bad_signature',
  'wrong_version',
  'no_guests',
  'name_taken',
  'replaced',
  'banned',
  'not_allowed',
])

export function failureMessage(code: string, message: string): string {
  return FAILURES[code] ?? (sentence(message) || `The world closed the connection (${code}).`)
}

function sentence(text: string): string {
  if (text === '') return ''
  return text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith('.') ? '' : '.')
}

export function isFinal(code: string): boolean {
  return FINAL.has(code)
}

const CORRECTIONS: Record<string, string> = {
  not_finite: 'Your position was reset.',
  out_of_world: 'The world ends here.',
  outside_border: 'The world ends here.',
  too_fast: 'You moved too fast and were put back.',
  claimed: 'Only members may enter this claim.',
}

export function correctionMessage(reason: string): string | null {
  return CORRECTIONS[reason] ?? null
}
