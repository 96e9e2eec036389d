// The hotbar: slots with blocks.

import { iconOf } from '../render/icons'
import { texts } from '../text/texts'
import { kindOf } from '../world/blocks'
import { el, restartAnimation } from './dom'

const MAX_GIFTS = 999
const LABEL_MS = 1600

interface Slot {
  readonly root: HTMLElement
  readonly image: HTMLImageElement
  readonly count: HTMLElement
  block: number | null
}

export class Hotbar {
  readonly root = el('div', 'hotbar')
  private readonly label = el('div', 'hotbar-label')
  private readonly slots: Slot[] = []
  private selected = 0
  private labelled: Slot | null = null // the selected slot, and its block, when the label was last shown
  private labelledBlock: number | null = null
  private fade: number | undefined
  private readonly gifts = new Map<number, number>() // blocks received and not yet placed, by block id

  constructor(size: number, select: (slot: number) => void) {
    this.root.setAttribute('role', 'toolbar')
    this.root.setAttribute('aria-label', texts.hotbar)
    this.root.append(this.label)
    for (let i = 0; i < size; i++) {
      const image = el('img')
      const count = el('span', 'slot-gift')
      const root = el('button', 'slot', image, el('span', 'slot-key', String(i + 1)), count)
      image.draggable = false
      root.type = 'button'
      root.tabIndex = -1
      root.addEventListener('click', () => select(i))
      this.slots.push({ root, image, count, block: null })
      this.root.append(root)
    }
    // a finger that slides over the hotbar selects the slot that it is on
    this.root.addEventListener('pointermove', ({ pointerType, clientX }) => {
      if (pointerType === 'mouse') return
      const slot = this.slots.findIndex(({ root }) => clientX < root.getBoundingClientRect().right)
      if (slot >= 0 && slot !== this.selected) select(slot)
    })
  }

  /** Adds received blocks: their slot shows the count until as many are placed. */
  addGift(block: number, count: number): void {
    this.gifts.set(block, Math.min(MAX_GIFTS, this.giftsLeft(block) + count))
    this.showCounts()
    for (const slot of this.slots) if (slot.block === block) restartAnimation(slot.root, 'gift')
  }

  /** Discards all gifts, for another world or another player. */
  clearGifts(): void {
    this.gifts.clear()
    this.showCounts()
  }

  /** Counts down the gifts of a block that was placed. */
  countPlaced(block: number): void {
    const left = this.giftsLeft(block)
    if (left > 1) this.gifts.set(block, left - 1)
    else this.gifts.delete(block)
    this.showCounts()
  }

  /** Returns how many blocks of a kind were received and are not yet placed. */
  giftsLeft(block: number): number {
    return this.gifts.get(block) ?? 0
  }

  show(blocks: readonly number[], selected: number): void {
    this.selected = selected
    for (const [i, slot] of this.slots.entries()) {
      const block = blocks[i] ?? null
      if (block !== null && block !== slot.block) {
        slot.image.src = iconOf(block)
        slot.image.alt = texts.block(kindOf(block).name)
      }
      slot.block = block
      slot.root.classList.toggle('selected', i === selected)
      slot.root.ariaPressed = String(i === selected)
    }
    this.showCounts()
    this.showLabel(this.slots[selected] ?? null)
  }

  private showCounts(): void {
    for (const { block, count } of this.slots) {
      const left = block === null ? 0 : this.giftsLeft(block)
      count.textContent = left > 0 ? `×${left}` : ''
    }
  }

  /** Shows the name of the selected block for a while, if it changed. */
  private showLabel(slot: Slot | null): void {
    const block = slot?.block ?? null
    if (block === null || (slot === this.labelled && block === this.labelledBlock)) return
    this.labelled = slot
    this.labelledBlock = block
    this.label.textContent = texts.block(kindOf(block).name)
    this.label.classList.add('shown')
    window.clearTimeout(this.fade)
    this.fade = window.setTimeout(() => this.label.classList.remove('shown'), LABEL_MS)
  }
}
