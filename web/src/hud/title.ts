// The first screen: who are you, and Play. Also where a refusal is told.

import { isName } from '../net/protocol'
import { el, show } from './dom'

export interface Who {
  name: string
  guest: boolean
}

/** The controls, for the first screen and the pause menu. */
export const KEYS: [string, string][] = [
  ['W A S D', 'walk'],
  ['Space', 'jump · rise'],
  ['F', 'fly'],
  ['Mouse', 'break · place'],
  ['E', 'blocks'],
  ['T', 'chat'],
  ['Click', 'hit a player'],
  ['G', 'give a player the block in hand'],
]

export class Title {
  readonly root: HTMLElement
  private readonly name = el('input', 'field')
  private readonly guest = el('input')
  private readonly play: HTMLButtonElement
  private readonly trouble = el('p', 'trouble hidden')

  constructor(who: Who, play: (who: Who) => void) {
    this.name.value = who.name
    this.name.maxLength = 20
    this.name.placeholder = 'Your name'
    this.name.spellcheck = false
    this.name.autocomplete = 'off'
    this.name.setAttribute('aria-label', 'Your name')
    this.guest.type = 'checkbox'
    this.guest.checked = who.guest
    this.play = el('button', 'primary', 'Play')
    const form = el(
      'form',
      'panel title-card',
      this.name,
      this.play,
      el('label', 'check', this.guest, el('span', '', 'Play as a guest, without this browser’s key')),
      this.trouble,
    )
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      const name = this.name.value.trim()
      if (!isName(name)) {
        this.tell('A name has 1 to 20 letters, digits, _ or -.')
        this.name.focus()
        return
      }
      play({ name, guest: this.guest.checked })
    })
    this.name.addEventListener('input', () => show(this.trouble, false))
    this.root = el(
      'section',
      'screen title',
      el('div', 'title-head', el('h1', 'logo', 'voxeld'), el('p', 'motto', 'one world, on everybody’s machines')),
      form,
      el('ul', 'keys', ...KEYS.map(([key, does]) => el('li', '', el('kbd', '', key), el('span', '', does)))),
    )
  }

  open(trouble: string | null = null): void {
    show(this.root, true)
    this.busy(false)
    if (trouble) this.tell(trouble)
    if (!this.name.value) this.name.focus()
  }

  close(): void {
    show(this.root, false)
    this.name.blur()
  }

  /** While joining. */
  busy(joining: boolean): void {
    this.play.disabled = joining
    this.play.textContent = joining ? 'Joining…' : 'Play'
    if (joining) show(this.trouble, false)
  }

  tell(trouble: string): void {
    this.trouble.textContent = trouble
    show(this.trouble, true)
  }
}

