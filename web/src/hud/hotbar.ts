// The hotbar: nine slots with blocks.

import { iconOf } from '../render/icons'
import { kindOf } from '../world/blocks'
import { el } from './dom'

const MAX_GIFTS = 999

export class Hotbar {
  readonly root = el('div', 'hotbar')
  private readonly label = el('div', 'hotbar-label')
  private readonly slots: HTMLElement[] = []
  private blocks: number[] = []
  private fade: number | undefined
  private readonly gifts = new Map<number, number>() // blocks received and not yet placed, by block id
  selected = 0

  constructor(select: (slot: number) => void) {
    this.root.append(this.label)
    for (let i = 0; i < 9; i++) {
      const slot = el('button', 'slot', el('img'), el('span', 'slot-key', String(i + 1)), el('span', 'slot-gift'))
      slot.type = 'button'
      slot.tabIndex = -1
      slot.addEventListener('click', () => select(i))
      this.slots.push(slot)
      this.root.append(slot)
    }
  }

  /** Adds received blocks: their slot shows the count until as many are placed. */
  addGift(block: number, count: number): void {
    this.gifts.set(block, Math.min(MAX_GIFTS, this.giftsLeft(block) + count))
    this.blocks.forEach((shown, i) => {
      if (shown !== block) return
      const slot = this.slots[i]
      this.showCount(slot, block)
      slot.classList.remove('gift')
      void slot.offsetWidth // restarts the animation
      slot.classList.add('gift')
    })
  }

  /** Discards all gifts, for another world or another player. */
  clearGifts(): void {
    this.gifts.clear()
    this.blocks.forEach((shown, i) => this.showCount(this.slots[i], shown))
  }

  /** Counts down the gifts of a block that was placed. */
  countPlaced(block: number): void {
    const left = this.giftsLeft(block)
    if (left === 0) return
    if (left > 1) this.gifts.set(block, left - 1)
    else this.gifts.delete(block)
    this.blocks.forEach((shown, i) => this.showCount(this.slots[i], shown))
  }

  /** Returns how many blocks of a kind were received and are not yet placed. */
  giftsLeft(block: number): number {
    return this.gifts.get(block) ?? 0
  }

  private showCount(slot: HTMLElement, block: number): void {
    const left = this.giftsLeft(block)
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
      this.showCount(slot, blocks[i])
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
