// The nine blocks at hand.

import { iconOf } from '../render/icons'
import { kindOf } from '../world/blocks'
import { el } from './dom'

export class Hotbar {
  readonly root = el('div', 'hotbar')
  private readonly label = el('div', 'hotbar-label')
  private readonly slots: HTMLElement[] = []
  private blocks: number[] = []
  private fade: number | undefined
  selected = 0

  constructor(choose: (slot: number) => void) {
    this.root.append(this.label)
    for (let i = 0; i < 9; i++) {
      const slot = el('button', 'slot', el('img'), el('span', 'slot-key', String(i + 1)))
      slot.type = 'button'
      slot.tabIndex = -1
      slot.addEventListener('click', () => choose(i))
      this.slots.push(slot)
      this.root.append(slot)
    }
  }

  show(blocks: readonly number[], selected: number): void {
    this.slots.forEach((slot, i) => {
      if (this.blocks[i] !== blocks[i]) {
        const image = slot.firstChild as HTMLImageElement
        image.src = iconOf(blocks[i])
        image.alt = kindOf(blocks[i]).name
        image.draggable = false
      }
      slot.classList.toggle('selected', i === selected)
    })
    if (this.selected !== selected || this.blocks[selected] !== blocks[selected]) {
      this.label.textContent = kindOf(blocks[selected]).name
      this.label.classList.add('shown')
      window.clearTimeout(this.fade)
      this.fade = window.setTimeout(() => this.label.classList.remove('shown'), 1600)
    }
    this.blocks = [...blocks]
    this.selected = selected
  }
}
