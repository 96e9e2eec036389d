// The dialog by which a player's key moves to another device: a link, its QR code and a file, all encrypted with a passphrase.

import { MIN_PASSPHRASE, codeIn, keyLink, openKey, sealKey, type TransferredKey } from '../net/key-transfer'
import type { SharedPage } from '../net/place-link'
import { laterTexts } from '../text/later-texts'
import { Dialog } from './dialog'
import { button, el, show } from './dom'
import { qrCode } from './qr'
import { reachNote } from './reach-note'
import './key-dialog.css'

const texts = laterTexts.key
const FILE_NAME = 'voxeld-key.txt'

export interface KeyDialogEvents {
  /** Returns the key of this browser, or null if it has none yet. */
  key(): TransferredKey | null
  /** Returns how this page is shared with other devices. */
  shared(): SharedPage
  /** The key of another device is here. */
  imported(key: TransferredKey): void
}

export class KeyDialog {
  private readonly dialog = new Dialog(texts.title, () => this.close())
  private readonly root = this.dialog.root

  constructor(
    parent: HTMLElement,
    private readonly events: KeyDialogEvents,
  ) {
    parent.append(this.root)
  }

  /** Opens the dialog that brings the key of this browser to another device. */
  openExport(): void {
    const passphrase = passphraseField('new-password')
    const result = el('div', 'key-result hidden')
    const error = el('p', 'error hidden')
    this.open(
      texts.exportTitle,
      texts.exportText,
      async () => {
        const key = this.events.key()
        if (!key) throw new Error(texts.noKey)
        if (passphrase.value.length < MIN_PASSPHRASE) throw new Error(texts.tooShort(MIN_PASSPHRASE))
        const shared = this.events.shared()
        const link = keyLink(shared.page, await sealKey(key, passphrase.value))
        result.replaceChildren(...transferOf(link), ...reachNote(shared))
        show(result, true)
      },
      texts.makeLink,
      error,
      [passphrase],
      result,
    )
  }

  /** Opens the dialog that takes over the key of another device. text is a link, or empty. */
  openImport(text: string): void {
    const code = el('textarea', 'field')
    code.placeholder = texts.paste
    code.setAttribute('aria-label', texts.link)
    code.rows = 3
    code.value = text
    const file = el('input', 'field')
    file.type = 'file'
    file.accept = '.txt,text/plain'
    file.setAttribute('aria-label', texts.file)
    file.addEventListener('change', () => void file.files?.[0]?.text().then((content) => (code.value = content.trim())))
    const passphrase = passphraseField('current-password')
    const error = el('p', 'error hidden')
    const replaced = this.events.key()
    this.open(
      texts.importTitle,
      texts.importText + (replaced ? texts.replaces(replaced.name) : ''),
      async () => {
        this.events.imported(await openKey(code.value, passphrase.value))
        this.close()
      },
      texts.takeOver,
      error,
      [code, file, passphrase],
      null,
    )
  }

  /** Opens the import if the page was opened by a link with a key, and removes the key from the address. */
  openFromAddress(): void {
    if (codeIn(location.hash) === null) return
    this.openImport(location.href)
    history.replaceState(null, '', location.pathname + location.search)
  }

  private open(
    title: string,
    text: string,
    submit: () => Promise<void>,
    label: string,
    error: HTMLElement,
    fields: HTMLElement[],
    result: HTMLElement | null,
  ): void {
    const go = el('button', 'primary', label)
    const form = el(
      'form',
      'panel key-dialog',
      el('h2', '', title),
      el('p', 'muted', text),
      ...fields,
      error,
      go,
      result,
    )
    form.append(button(laterTexts.close, 'quiet', () => this.close()))
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      show(error, false)
      go.disabled = true
      submit()
        .catch((reason: unknown) => {
          error.textContent = reason instanceof Error ? reason.message : String(reason)
          show(error, true)
        })
        .finally(() => (go.disabled = false))
    })
    this.root.replaceChildren(form)
    this.dialog.toggle(true)
    fields[0]?.focus()
  }

  private close(): void {
    this.dialog.toggle(false)
    this.root.replaceChildren()
  }
}

function passphraseField(autocomplete: 'new-password' | 'current-password'): HTMLInputElement {
  const field = el('input', 'field')
  field.type = 'password'
  field.autocomplete = autocomplete
  field.placeholder = texts.passphrase
  field.setAttribute('aria-label', texts.passphrase)
  return field
}

/** Returns what shows a link: its QR code, the link itself, and buttons. */
function transferOf(link: string): HTMLElement[] {
  const text = el('input', 'field')
  text.readOnly = true
  text.value = link
  text.setAttribute('aria-label', texts.ownLink)
  text.addEventListener('focus', () => text.select())
  const copy = button(laterTexts.copy, 'quiet', () => {
    void navigator.clipboard.writeText(link).then(() => (copy.textContent = laterTexts.copied))
  })
  show(copy, window.isSecureContext) // pages over plain http have no clipboard
  const save = button(texts.save, 'quiet', () => {
    const anchor = el('a')
    anchor.href = URL.createObjectURL(new Blob([link + '\n'], { type: 'text/plain' }))
    anchor.download = FILE_NAME
    anchor.click()
    URL.revokeObjectURL(anchor.href)
  })
  return [qrCode(link), text, el('div', 'key-actions', copy, save)]
}
