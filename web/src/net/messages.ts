// Texts for the protocol's error codes, as players see them.

import { noticeText } from '../text/notices'
import { texts } from '../text/texts'
import type { Failure } from './protocol'

/** Returns why a hit or a gift was denied. */
export function denialMessage(code: string): string {
  return textOf(texts.denials, code) ?? refusalMessage(code)
}

/** Temporary refusals: the same edit may be sent again later. */
export const RETRYABLE = new Set(['not_loaded', 'unavailable', 'rate'])

/** Refusals decided without reading the block: their block field is not valid. */
export const WITHOUT_BLOCK = new Set(['not_loaded', 'unavailable', 'quarantined', 'out_of_world', 'unsigned'])

export function refusalMessage(code: string): string {
  return textOf(texts.refusals, code) ?? texts.refused(code)
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

/** Returns why the server ended the session. The notice, if there is one, says more than the code. */
export function failureMessage({ code, message, notice }: Failure): string {
  if (notice) return noticeText(notice)
  return textOf(texts.failures, code) ?? (sentence(message) || texts.closed(code))
}

function sentence(text: string): string {
  if (text === '') return ''
  return text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith('.') ? '' : '.')
}

export function isFinal(code: string): boolean {
  return FINAL.has(code)
}

export function correctionMessage(reason: string): string | null {
  return textOf(texts.corrections, reason) ?? null
}

/** Returns the text of a code that a node sent, undefined if it has none. */
function textOf(texts: Partial<Record<string, string>>, code: string): string | undefined {
  return Object.hasOwn(texts, code) ? texts[code] : undefined
}
