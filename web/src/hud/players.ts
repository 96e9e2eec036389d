// The list of players in view, shown while Tab is held.

import { appearanceOf } from '../render/figure'
import { el, show } from './dom'

export interface Listed {
  player: string
  name: string
  guest: boolean
  /** In blocks; null for the player's own row. */
  distance: number | null
}

export class Players {
  readonly root = el('div', 'panel players hidden')
  private readonly list = el('ul')
  private readonly head = el('h2')

  constructor() {
    this.root.append(this.head, this.list)
  }

  toggle(open: boolean): void {
    show(this.root, open)
  }

  show(world: string, players: Listed[]): void {
    this.head.textContent = `${world} · ${players.length === 1 ? 'Nobody else nearby' : `${players.length} players`}`
    this.list.replaceChildren(
      ...players.map(({ player, name, guest, distance }) => {
        const swatch = el('i', 'swatch')
        swatch.style.background = appearanceOf(player).css
        return el(
          'li',
          '',
          swatch,
          el('span', 'grow', name),
          guest ? el('span', 'badge', 'guest') : null,
          el('span', 'muted', distance === null ? 'you' : `${Math.round(distance)} m`),
        )
      }),
    )
  }
}
