// The switch of the map that shows which node leads which land, and its legend.

import { laterTexts } from '../text/later-texts'
import { el, show } from './dom'
import type { MapCanvas } from './map-canvas'

const texts = laterTexts.map

export class HostLayer {
  readonly root: HTMLElement
  private readonly legend = el('ul', 'map-legend hidden')
  private shown = ''

  /** own is the peer id of the node that serves this page's session, or this page. */
  constructor(
    private readonly map: MapCanvas,
    private readonly own: () => string,
  ) {
    const box = el('input')
    box.type = 'checkbox'
    box.addEventListener('change', () => {
      map.showHosts = box.checked
      show(this.legend, box.checked)
      map.update(performance.now())
    })
    this.root = el('section', '', el('label', 'check', box, el('span', '', texts.hosts)), this.legend)
  }

  /** Updates the legend. Called when the map was drawn. */
  update(): void {
    if (!this.map.showHosts) return
    const rows = this.map.hosts.legend(this.map.view.frame)
    const shown = JSON.stringify([rows, this.own()])
    if (shown === this.shown) return
    this.shown = shown
    const items = rows.map(({ node, regions }) => {
      const swatch = el('i', 'swatch')
      swatch.style.background = this.map.hosts.colourOf(node)
      const item = el(
        'li',
        '',
        swatch,
        el('span', 'grow', node ? `…${node.slice(-6)}` : texts.noLeader),
        node === this.own() ? el('span', 'badge', texts.thisNode) : null,
        el('span', 'muted', texts.regions(regions)),
      )
      item.dataset.node = node
      item.title = node
      return item
    })
    this.legend.replaceChildren(...(rows.length > 0 ? items : [el('li', 'muted', texts.nobody)]))
  }
}
