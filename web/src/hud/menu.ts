// The menu in the world: resume, settings, leave.

import { RANGES, type Settings } from '../settings/settings'
import { Dialog } from './dialog'
import { button, el } from './dom'
import { Help } from './help'

type Numbers = keyof typeof RANGES
type Flags = 'invert' | 'smoothEdges' | 'adaptive' | 'sound' | 'hints'

const SLIDERS: [Numbers, string, (value: number) => string][] = [
  ['view', 'View distance', (v) => `${v} chunks`],
  ['fieldOfView', 'Field of view', (v) => `${v}°`],
  ['sensitivity', 'Sensitivity', (v) => `${v.toFixed(1)}×`],
  ['brightness', 'Brightness', percent],
  ['renderScale', 'Resolution', percent],
]

function percent(value: number): string {
  return `${Math.round(value * 100)} %`
}

export class Menu {
  readonly root: HTMLElement
  private readonly dialog: Dialog
  private readonly world = el('p', 'muted')
  private readonly boxes: [box: HTMLInputElement, key: Flags][] = []
  private readonly effectiveQuality = el('small', 'muted')

  constructor(
    private readonly settings: Settings,
    changed: () => void,
    resume: () => void,
    takeKey: () => void,
    invite: () => void,
    past: () => void,
    leave: () => void,
  ) {
    const rows = SLIDERS.map(([key, label, text]) => {
      const [min, max, step] = RANGES[key]
      const slider = el('input')
      slider.type = 'range'
      slider.min = String(min)
      slider.max = String(max)
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
    const flag = (key: Flags, label: string, hint: Node | null = null) => {
      const box = el('input')
      box.type = 'checkbox'
      this.boxes.push([box, key])
      box.addEventListener('change', () => {
        settings[key] = box.checked
        changed()
      })
      return el('label', 'check', box, el('span', '', label, hint))
    }
    const help = new Help('muted', true, settings.bindings)
    const rebound = () => {
      help.update(settings.bindings)
      changed()
    }
    const keys = el('details', 'with-keys', el('summary', '', 'Keys…'))
    keys.addEventListener('toggle', () => {
      if (keys.childElementCount > 1) return
      void import('./key-bindings').then(({ KeyBindings }) => {
        if (keys.childElementCount === 1) keys.append(new KeyBindings(settings, rebound).root)
      })
    })
    const panel = el(
      'div',
      'panel menu',
      el('h2', '', 'Menu'),
      this.world,
      button('Back to the world', 'primary', resume),
      el(
        'div',
        'rows',
        ...rows,
        flag('invert', 'Invert looking up and down'),
        flag('adaptive', 'Lower quality when it’s slow', this.effectiveQuality),
        flag('smoothEdges', 'Anti-aliasing', el('small', 'muted', ' (needs reload)')),
        flag('sound', 'Sounds'),
        flag('hints', 'Show the first steps'),
      ),
      button('Watch the past…', 'quiet', past),
      button('Invite a friend…', 'quiet', invite),
      button('Play on another device…', 'quiet', takeKey),
      button('Leave', 'quiet', leave),
      keys,
      ...help.lists,
    )
    this.dialog = new Dialog('Menu', resume, panel)
    this.root = this.dialog.root
  }

  toggle(open: boolean): void {
    for (const [box, key] of this.boxes) box.checked = this.settings[key] // keys change some of them
    this.dialog.toggle(open)
  }

  /** Shows the quality in effect if it is lower than the settings. */
  showEffectiveQuality(settings: Settings, effective: Pick<Settings, 'view' | 'renderScale'>): void {
    const lowered = effective.view < settings.view || effective.renderScale < settings.renderScale
    this.effectiveQuality.textContent = lowered
      ? ` now ${effective.view} chunks at ${percent(effective.renderScale)}`
      : ''
  }

  setWorld(text: string): void {
    this.world.textContent = text
  }
}
