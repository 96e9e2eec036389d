// The list of everybody in the world, shown while Tab is held: first those nearby.

import { appearanceOf } from '../render/figure'
import { texts } from '../text/texts'
import { el, show } from './dom'

const MAX_ROWS = 500
const MANY = 15 // rows, which are shown in columns

export interface Listed {
  /** Empty for somebody who is not near: only their name is known. */
  player: string
  name: string
  guest: boolean
  /** In blocks; null for the player's own row, and for those who are not near. */
  distance: number | null
  inView: boolean
}

export class Players {
  readonly root = el('div', 'panel players hidden')
  private readonly list = el('ul')
  private readonly head = el('h2')
  private readonly missing = el('p', 'muted hidden', texts.playersMissing)

  constructor() {
    this.root.append(this.head, this.list, this.missing)
  }

  toggle(open: boolean): void {
    show(this.root, open)
  }

  /** Count is the number of players in the world; complete is false if some land near did not say who is there. */
  show(world: string, players: Listed[], count: number, complete: boolean): void {
    show(this.missing, !complete)
    this.head.textContent = `${world} · ${count === 1 ? texts.nobodyElse : texts.players(count)}`
    this.root.classList.toggle('many', players.length > MANY)
    this.list.replaceChildren(
      ...players.slice(0, MAX_ROWS).map(({ player, name, guest, distance, inView }) => {
        const swatch = el('i', 'swatch')
        if (player) swatch.style.background = appearanceOf(player).css
        return el(
          'li',
          inView ? '' : 'far',
          swatch,
          el('span', 'grow', name),
          guest ? el('span', 'badge', texts.guest) : null,
          el('span', 'muted', distance === null ? (player ? texts.you : '') : `${Math.round(distance)} m`),
        )
      }),
    )
  }
}
