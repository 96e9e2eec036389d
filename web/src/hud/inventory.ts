// All blocks that can be placed; a click puts one into the selected slot of the hotbar.

import { iconOf } from '../render/icons'
import { PLACEABLE, kindOf } from '../world/blocks'
import { Dialog } from './dialog'
import { button, el } from './dom'
import './inventory.css'

export class Inventory {
  readonly root: HTMLElement
  private readonly dialog: Dialog

  constructor(select: (block: number) => void, close: () => void) {
    const grid = el('div', 'inventory-grid')
    const name = el('span', 'muted', 'Click a block to hold it.')
    for (const block of PLACEABLE) {
      const image = el('img')
      image.src = iconOf(block)
      image.alt = kindOf(block).name
      image.draggable = false
      const slot = el('button', 'slot', image)
      slot.type = 'button'
      slot.title = kindOf(block).name
      slot.addEventListener('focus', () => (name.textContent = kindOf(block).name))
      slot.addEventListener('mouseenter', () => (name.textContent = kindOf(block).name))
      slot.addEventListener('click', () => select(block))
      grid.append(slot)
    }
    const panel = el(
      'div',
      'panel inventory',
      el('header', '', el('h2', '', 'Blocks'), button('Close', 'quiet', close)),
      grid,
      el('footer', '', name),
    )
    this.dialog = new Dialog('Blocks', close, panel)
    this.root = this.dialog.root
    this.root.addEventListener('mousedown', (event) => {
      if (event.target === this.root) close()
    })
  }

  toggle(open: boolean): void {
    this.dialog.toggle(open)
  }
}
