// What is said beside a link that not everybody can open.

import type { SharedPage } from '../net/place-link'
import { laterTexts } from '../text/later-texts'
import { el } from './dom'

/** Returns the note for a link; nothing for one that everybody can open. */
export function reachNote({ reach }: SharedPage): HTMLElement[] {
  return reach === 'everywhere' ? [] : [el('p', 'muted', laterTexts.reach[reach])]
}
