// The nine blocks at hand.

import { iconOf } from '../render/icons'
import { kindOf } from '../world/blocks'
import { el } from './dom'

const MOST_GIFTS = 999

export class Hotbar {
  readonly root = el('div', 'hotbar')
  private readonly label = el('div', 'hotbar-label')
  private readonly slots: HTMLElement[] = []
  private blocks: number[] = []
  private fade: number | undefined
  private readonly gifts = new Map<number, number>() // blocks that were given and are not yet placed, by kind
  selected = 0

  constructor(choose: (slot: number) => void) {
    this.root.append(this.label)
    for (let i = 0; i < 9; i++) {
      const slot = el('button', 'slot', el('img'), el('span', 'slot-key', String(i + 1)), el('span', 'slot-gift'))
      slot.type = 'button'
      slot.tabIndex = -1
      slot.addEventListener('click', () => choose(i))
      this.slots.push(slot)
      this.root.append(slot)
    }
  }

  /** Some blocks of a kind were given: the place that has them says how many, until as many are placed. */
  given(block: number, count: number): void {
    this.gifts.set(block, Math.min(MOST_GIFTS, this.left(block) + count))
    this.blocks.forEach((there, i) => {
      if (there !== block) return
      const slot = this.slots[i]
      this.count(slot, block)
      slot.classList.remove('gift')
      void slot.offsetWidth // begins the animation anew
      slot.classList.add('gift')
    })
  }

  /** Another world, or another player: what was given is gone. */
  forget(): void {
    this.gifts.clear()
    this.blocks.forEach((there, i) => this.count(this.slots[i], there))
  }

  placed(block: number): void {
    const left = this.left(block)
    if (left === 0) return
    if (left > 1) this.gifts.set(block, left - 1)
    else this.gifts.delete(block)
    this.blocks.forEach((there, i) => this.count(this.slots[i], there))
  }

  /** How many of a kind were given and are not yet placed. */
  left(block: number): number {
    return this.gifts.get(block) ?? 0
  }

  private count(slot: HTMLElement, block: number): void {
    const left = this.left(block)
    slot.lastChild!.textContent = left > 0 ? `×${left}` : ''
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
      this.count(slot, blocks[i])
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
