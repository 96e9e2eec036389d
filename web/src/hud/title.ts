// The title screen: name, guest option and Play. It also shows why a join was refused.

import { isName } from '../net/protocol'
import { randomName } from '../settings/random-name'
import { button, el, show } from './dom'
import { helpLists } from './help'

/** How the player wants to join. */
export interface JoinChoice {
  name: string
  guest: boolean
}

export class Title {
  readonly root: HTMLElement
  private readonly name = el('input', 'field')
  private readonly guest = el('input')
  private readonly play: HTMLButtonElement
  private readonly error = el('p', 'error hidden')
  private readonly chosen: boolean // the player has chosen the name that is shown at first

  constructor(initial: JoinChoice, play: (choice: JoinChoice) => void, bringKey: () => void) {
    this.name.value = initial.name || randomName()
    this.chosen = initial.name !== ''
    this.name.maxLength = 20
    this.name.placeholder = 'Your name'
    this.name.spellcheck = false
    this.name.autocomplete = 'off'
    this.name.setAttribute('aria-label', 'Your name')
    this.guest.type = 'checkbox'
    this.guest.checked = initial.guest
    this.play = el('button', 'primary', 'Play')
    const form = el(
      'form',
      'panel title-card',
      this.name,
      this.play,
      el('label', 'check', this.guest, el('span', '', 'Play as a guest (your name isn’t protected)')),
      this.error,
      button('Bring your key from another device', 'link', bringKey),
    )
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      const name = this.name.value.trim()
      if (!isName(name)) {
        this.showError(name === '' ? 'Type a name first.' : 'Use 1–20 letters, digits, _ or -')
        this.name.focus()
        return
      }
      play({ name, guest: this.guest.checked })
    })
    this.name.addEventListener('input', () => show(this.error, false))
    this.root = el(
      'main',
      'screen title',
      el('div', 'title-head', el('h1', 'logo', 'voxeld'), el('p', 'motto', 'One world, hosted by everyone')),
      form,
      ...helpLists(''),
    )
  }

  open(error: string | null = null): void {
    show(this.root, true)
    this.setJoining(false)
    if (error) this.showError(error)
    if (!this.chosen) this.name.select() // typing replaces it
  }

  close(): void {
    show(this.root, false)
    this.name.blur()
  }

  /** Shows the name of a key that was brought here. */
  setName(name: string): void {
    this.name.value = name
    this.guest.checked = false
    show(this.error, false)
  }

  /** Disables the form while joining. */
  setJoining(joining: boolean): void {
    this.play.disabled = joining
    this.play.textContent = joining ? 'Joining…' : 'Play'
    if (joining) show(this.error, false)
  }

  showError(text: string): void {
    this.error.textContent = text
    show(this.error, true)
  }
}
