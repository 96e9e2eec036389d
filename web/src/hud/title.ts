// The title screen: name, guest option and Play. It also shows why a join was refused.

import { isName } from '../net/protocol'
import type { Bindings } from '../settings/bindings'
import { randomName } from '../settings/random-name'
import { texts } from '../text/texts'
import { find, show } from './dom'
import { Help } from './help'
import './style.css'

/** How the player wants to join. */
export interface JoinChoice {
  name: string
  guest: boolean
}

export class Title {
  private readonly name: HTMLInputElement
  private readonly guest: HTMLInputElement
  private readonly play: HTMLButtonElement
  private readonly error: HTMLElement
  private readonly help: Help
  private readonly chosen: boolean // the player has chosen the name that is shown at first

  /** root is the title screen of index.html. */
  constructor(
    private readonly root: HTMLElement,
    initial: JoinChoice & { bindings: Bindings },
    play: (choice: JoinChoice) => void,
    bringKey: () => void,
  ) {
    const form = find(root, 'form')
    for (const element of root.querySelectorAll<HTMLElement>('[data-text]'))
      element.textContent = texts.page[element.dataset.text as keyof typeof texts.page]
    this.name = find(root, 'input')
    this.name.placeholder = this.name.ariaLabel = texts.page.name
    this.guest = find(root, 'input', '[type=checkbox]')
    this.play = find(root, 'button', '.primary')
    this.error = find(root, 'p', '.error')
    this.name.value = initial.name || randomName()
    this.chosen = initial.name !== ''
    this.guest.checked = initial.guest
    this.help = new Help('', Object.values(texts.help), initial.bindings)
    root.append(...this.help.lists)
    find(root, 'button', '.link').addEventListener('click', bringKey)
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      const name = this.name.value.trim()
      if (!isName(name)) {
        this.showError(name === '' ? texts.noName : texts.badName)
        this.name.focus()
        return
      }
      this.setJoining(true)
      play({ name, guest: this.guest.checked })
    })
    this.name.addEventListener('input', () => show(this.error, false))
    this.setJoining(false)
    if (!this.chosen) this.name.select() // typing replaces it
  }

  /** Shows the keys as the player has bound them. */
  showKeys(bindings: Bindings): void {
    this.help.update(bindings)
  }

  open(error: string | null = null): void {
    show(this.root, true)
    this.setJoining(false)
    if (error) this.showError(error)
  }

  close(): void {
    show(this.root, false)
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
    this.play.textContent = joining ? texts.joining : texts.page.play
    if (joining) show(this.error, false)
  }

  showError(text: string): void {
    this.error.textContent = text
    show(this.error, true)
  }
}
