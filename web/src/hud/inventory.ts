// All blocks that can be placed, in groups; a click puts one into the selected slot of the hotbar, a digit into its slot.

import { slotOf } from '../input/controls'
import { iconOf } from '../render/icons'
import { codeOf } from '../settings/bindings'
import { laterTexts } from '../text/later-texts'
import { texts } from '../text/texts'
import { PLACEABLE, kindOf } from '../world/blocks'
import { Dialog } from './dialog'
import { button, el, show } from './dom'
import './inventory.css'

interface Slot {
  root: HTMLElement
  /** What a search looks in, in lower case. */
  text: string
}

export interface InventoryOptions {
  /** It is in the dialog while that is open. */
  hotbar: HTMLElement
  /** Puts a block into a slot, or into the selected one. */
  put: (block: number, slot?: number) => void
  select: (slot: number) => void
  close: () => void
}

export class Inventory {
  readonly root: HTMLElement
  private readonly dialog: Dialog
  private readonly search = el('input', 'field')
  private readonly name = el('span', 'muted', laterTexts.inventory.hold)
  private readonly groups: { root: HTMLElement; slots: Slot[] }[]

  private readonly beforeHotbar: Element | null // in the world
  private pointed: number | null = null // the block under the mouse, or with the focus

  constructor(private readonly options: InventoryOptions) {
    const { close, hotbar } = options
    this.beforeHotbar = hotbar.previousElementSibling
    const names = [...new Set(PLACEABLE.map((block) => kindOf(block).group))]
    this.groups = names.map((group) => {
      const slots = PLACEABLE.filter((block) => kindOf(block).group === group).map((block) => this.slotOf(block))
      const grid = el('div', 'inventory-grid', ...slots.map(({ root }) => root))
      return { root: el('section', '', el('h3', 'muted', laterTexts.group(group)), grid), slots }
    })
    const { search } = this
    search.placeholder = laterTexts.inventory.search
    search.setAttribute('aria-label', laterTexts.inventory.searchFor)
    search.addEventListener('input', () => this.find(search.value))
    const panel = el(
      'div',
      'panel inventory',
      el('header', '', el('h2', '', laterTexts.inventory.title), search, button(laterTexts.close, 'quiet', close)),
      el('div', 'inventory-groups', ...this.groups.map(({ root }) => root)),
      el('footer', '', this.name),
    )
    panel.tabIndex = -1
    panel.autofocus = true // digits and the key that closes it are not for the search
    this.dialog = new Dialog(laterTexts.inventory.title, close, panel)
    this.root = this.dialog.root
    this.root.addEventListener('mousedown', (event) => {
      if (event.target === this.root) close()
    })
  }

  toggle(open: boolean): void {
    if (open && this.search.value !== '') {
      this.search.value = ''
      this.find('')
    }
    const { hotbar } = this.options
    if (open) this.root.append(hotbar)
    else if (this.root.contains(hotbar)) this.beforeHotbar?.after(hotbar)
    this.pointed = null
    this.dialog.toggle(open)
  }

  key(event: KeyboardEvent): boolean {
    const { key, target, ctrlKey, metaKey, altKey } = event
    const searching = target === this.search
    const slot = slotOf(searching ? `Digit${key}` : codeOf(event)) // no name of a block has a digit
    if (slot !== null && !ctrlKey && !metaKey && !altKey) {
      if (this.pointed === null) this.options.select(slot)
      else this.options.put(this.pointed, slot)
      return true
    }
    if (key !== 'Enter' || !searching) return false
    this.firstFound()?.click()
    return true
  }

  private slotOf(block: number): Slot {
    const kind = kindOf(block)
    const name = texts.block(kind.name)
    const image = el('img')
    image.src = iconOf(block)
    image.alt = name
    image.draggable = false
    const root = el('button', 'slot', image)
    root.type = 'button'
    root.title = name
    const point = () => {
      this.pointed = block
      this.name.textContent = name
    }
    const leave = () => (this.pointed = null)
    root.addEventListener('focus', point)
    root.addEventListener('blur', leave)
    root.addEventListener('mouseenter', point)
    root.addEventListener('mouseleave', leave)
    root.addEventListener('click', () => this.options.put(block))
    return { root, text: `${name} ${laterTexts.group(kind.group)}`.toLowerCase() }
  }

  /** Shows the blocks that have all words of a text in their name or group. */
  private find(text: string): void {
    const words = text.toLowerCase().split(/\s+/)
    for (const { root, slots } of this.groups) {
      for (const slot of slots)
        show(
          slot.root,
          words.every((word) => slot.text.includes(word)),
        )
      show(
        root,
        slots.some((slot) => !slot.root.classList.contains('hidden')),
      )
    }
    this.name.textContent = this.firstFound() ? laterTexts.inventory.hold : laterTexts.inventory.none
  }

  private firstFound(): HTMLElement | undefined {
    return this.groups.flatMap(({ slots }) => slots).find(({ root }) => !root.classList.contains('hidden'))?.root
  }
}
