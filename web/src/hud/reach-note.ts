import type { SharedPage } from '../net/place-link'
import { laterTexts } from '../text/later-texts'
import { el } from './dom'

/** Returns what to say beside a link that not everybody can open; nothing for one that everybody can. */
export function reachNote({ reach }: SharedPage): HTMLElement[] {
  return reach === 'everywhere' ? [] : [el('p', 'muted', laterTexts.reach[reach])]
}
