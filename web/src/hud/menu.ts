// The pause menu: back to the game, settings, leave.

import { RANGES, type Settings } from '../settings'
import { button, el, show } from './dom'
import { KEYS } from './title'

type Numbers = keyof typeof RANGES

const SLIDERS: [Numbers, string, (value: number) => string][] = [
  ['view', 'View distance', (v) => `${v} chunks`],
  ['fieldOfView', 'Field of view', (v) => `${v}°`],
  ['sensitivity', 'Mouse', (v) => `${v.toFixed(1)}×`],
  ['renderScale', 'Resolution', (v) => `${Math.round(v * 100)} %`],
]

export class Menu {
  readonly root: HTMLElement
  private readonly world = el('p', 'muted')
  private readonly effectiveQuality = el('small', 'muted')

  constructor(
    settings: Settings,
    changed: () => void,
    resume: () => void,
    leave: () => void,
  ) {
    const rows = SLIDERS.map(([key, label, text]) => {
      const [least, most, step] = RANGES[key]
      const slider = el('input')
      slider.type = 'range'
      slider.min = String(least)
      slider.max = String(most)
      slider.step = String(step)
      slider.value = String(settings[key])
      slider.setAttribute('aria-label', label)
      const value = el('output', '', text(settings[key]))
      slider.addEventListener('input', () => {
        settings[key] = Number(slider.value)
        value.textContent = text(settings[key])
        changed()
      })
      return el('label', 'row', el('span', '', label), slider, value)
    })
    const flag = (key: 'smoothEdges' | 'adaptive' | 'sound', label: string, hint: Node | null = null) => {
      const box = el('input')
      box.type = 'checkbox'
      box.checked = settings[key]
      box.addEventListener('change', () => {
        settings[key] = box.checked
        changed()
      })
      return el('label', 'check', box, el('span', '', label, hint))
    }
    const panel = el(
      'div',
      'panel menu',
      el('h2', '', 'Paused'),
      this.world,
      button('Back to the world', 'primary', resume),
      el(
        'div',
        'rows',
        ...rows,
        flag('adaptive', 'Draw less while frames are slow', this.effectiveQuality),
        flag('smoothEdges', 'Smooth edges', el('small', 'muted', ' after a reload')),
        flag('sound', 'Sounds'),
      ),
      el('ul', 'keys muted', ...KEYS.map(([key, does]) => el('li', '', el('kbd', '', key), el('span', '', does)))),
      button('Leave', 'quiet', leave),
    )
    this.root = el('section', 'screen shade hidden', panel)
  }

  toggle(open: boolean): void {
    show(this.root, open)
  }

  /** Says what is drawn now, if it is less than the sliders say. */
  showEffectiveQuality(settings: Settings, drawn: Pick<Settings, 'view' | 'renderScale'>): void {
    const less = drawn.view < settings.view || drawn.renderScale < settings.renderScale
    this.effectiveQuality.textContent = less ? ` now ${drawn.view} chunks at ${Math.round(drawn.renderScale * 100)} %` : ''
  }

  describe(text: string): void {
    this.world.textContent = text
  }
}
