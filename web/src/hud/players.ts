// The list of players nearby, shown while Tab is held.

import { appearanceOf } from '../render/figure'
import { el, show } from './dom'

export interface Listed {
  player: string
  name: string
  guest: boolean
  /** In blocks; null for the player's own row. */
  distance: number | null
  inView: boolean
}

export class Players {
  readonly root = el('div', 'panel players hidden')
  private readonly list = el('ul')
  private readonly head = el('h2')
  private readonly missing = el('p', 'muted hidden', 'Some land did not answer: there may be others.')

  constructor() {
    this.root.append(this.head, this.list, this.missing)
  }

  toggle(open: boolean): void {
    show(this.root, open)
  }

  /** Complete is false if some land near did not say who is there. */
  show(world: string, players: Listed[], complete: boolean): void {
    show(this.missing, !complete)
    this.head.textContent = `${world} · ${players.length === 1 ? 'Nobody else nearby' : `${players.length} players`}`
    this.list.replaceChildren(
      ...players.map(({ player, name, guest, distance, inView }) => {
        const swatch = el('i', 'swatch')
        swatch.style.background = appearanceOf(player).css
        return el(
          'li',
          inView ? '' : 'far',
          swatch,
          el('span', 'grow', name),
          guest ? el('span', 'badge', 'guest') : null,
          el('span', 'muted', distance === null ? 'you' : `${Math.round(distance)} m`),
        )
      }),
    )
  }
}
