// The dialog that invites a friend: a link to where the player stands, and its QR code.

import { placeLink, type SharedPage } from '../net/place-link'
import { laterTexts } from '../text/later-texts'
import { Dialog } from './dialog'
import { button, el, show } from './dom'
import { qrCode } from './qr'
import { reachNote } from './reach-note'
import './key-dialog.css'

/** Shows the dialog over the others until it is closed. */
export function showInvite(parent: HTMLElement, shared: SharedPage, place: Parameters<typeof placeLink>[1]): void {
  const texts = laterTexts.invite
  const link = placeLink(shared.page, place)
  const text = el('input', 'field')
  text.readOnly = true
  text.value = link
  text.setAttribute('aria-label', texts.link)
  text.addEventListener('focus', () => text.select())
  const copy = button(laterTexts.copy, 'primary', () => {
    void navigator.clipboard.writeText(link).then(() => (copy.textContent = laterTexts.copied))
  })
  show(copy, window.isSecureContext) // pages over plain http have no clipboard
  const close = () => {
    dialog.toggle(false)
    dialog.root.remove()
  }
  const dialog = new Dialog(
    texts.title,
    close,
    el(
      'div',
      'panel key-dialog',
      el('h2', '', texts.title),
      el('p', 'muted', texts.text),
      el('div', 'key-result', qrCode(link), text, ...reachNote(shared)),
      el('div', 'key-actions', copy, button(laterTexts.close, 'quiet', close)),
    ),
  )
  parent.append(dialog.root)
  dialog.toggle(true)
  text.focus()
}
