// The menu in the world: resume, and in tabs what else there is, the settings, and the keys.

import type { Welcome } from '../net/protocol'
import type { Action } from '../settings/bindings'
import { LANGUAGES, isLanguage } from '../settings/language'
import { RANGES, type Settings } from '../settings/settings'
import { laterTexts } from '../text/later-texts'
import { texts as commonTexts } from '../text/texts'
import { Dialog } from './dialog'
import { button, el, show } from './dom'
import { adjustFocused } from './focus'
import { Help } from './help'
import type { KeyBindings } from './key-bindings'
import './menu.css'
import { packRow } from './pack-row'

/** What the menu shows besides the settings. */
export interface MenuStatus {
  welcome: Pick<Welcome, 'name' | 'guest' | 'world_name'> | null
  /** The quality in effect. */
  quality: Pick<Settings, 'view' | 'renderScale'>
}

export interface MenuEvents {
  settingsChanged: () => void
  resume: () => void
  perform: (action: Action) => void
  chooseSkin: () => void
  invite: () => void
  /** The key is to be taken to another device. */
  takeKey: () => void
  leave: () => void
  /** Returns how many edits would be lost by leaving now. */
  unsaved: () => number
}

const TABS = ['game', 'settings', 'keys'] as const
type Tab = (typeof TABS)[number]
type Numbers = keyof typeof RANGES
type Flags =
  'invert' | 'smoothEdges' | 'horizon' | 'weather' | 'adaptive' | 'sound' | 'autoJump' | 'hints' | 'worldTextures'

const texts = laterTexts.menu
const SLIDERS: [Numbers, string, (value: number) => string][] = [
  ['view', texts.view, texts.chunks],
  ['fieldOfView', texts.fieldOfView, (v) => `${v}°`],
  ['sensitivity', texts.sensitivity, (v) => `${v.toFixed(1)}×`],
  ['brightness', texts.brightness, percent],
  ['renderScale', texts.renderScale, percent],
  ['volume', texts.volume, percent],
  ['music', texts.music, percent],
]

/** Returns the choice of the language, which takes effect with a reload. */
function languageRow(settings: Settings, changed: () => void): HTMLElement {
  const select = el('select', 'field')
  select.append(new Option(texts.browserLanguage, ''))
  for (const [language, name] of Object.entries(LANGUAGES)) select.append(new Option(name, language))
  select.value = settings.language ?? ''
  select.setAttribute('aria-label', texts.language)
  const reload = button(texts.reload, 'quiet hidden', () => location.reload())
  select.addEventListener('change', () => {
    settings.language = isLanguage(select.value) ? select.value : null
    changed()
    show(reload, true)
  })
  return el('div', 'row', el('span', '', texts.language), select, reload)
}

/** A link to the licenses of the software that the page and the node are made of. */
function licenses(label: string): HTMLElement {
  const link = el('a', 'muted', label)
  link.href = './notices.txt'
  link.target = '_blank'
  return el('p', '', link)
}

function percent(value: number): string {
  return `${Math.round(value * 100)} %`
}

export class Menu {
  readonly root: HTMLElement
  private readonly dialog: Dialog
  private readonly world = el('p', 'muted')
  private readonly boxes: [box: HTMLInputElement, key: Flags][] = []
  private readonly effectiveQuality = el('small', 'muted')
  private readonly tabs: HTMLElement
  private readonly leave: HTMLElement
  private asked = false // whether to leave with unsaved edits
  private bindings: KeyBindings | null = null // loaded when they are opened first

  constructor(
    private readonly settings: Settings,
    { settingsChanged: changed, resume, perform, chooseSkin, invite, takeKey, leave, unsaved }: MenuEvents,
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
    const help = new Help(
      'muted',
      [...Object.values(commonTexts.help), ...Object.values(laterTexts.help)],
      settings.bindings,
    )
    const rebound = () => {
      help.update(settings.bindings)
      changed()
    }
    this.leave = button(texts.leave, 'quiet', () => {
      const edits = unsaved()
      if (edits === 0 || this.asked) leave()
      else this.leave.textContent = texts.leaveUnsaved(edits)
      this.asked = true
    })
    const keys = el('div', 'with-keys')
    const pages: Record<Tab, HTMLElement> = {
      game: el(
        'div',
        'rows',
        button(texts.camera, 'quiet', () => perform('camera')),
        button(texts.skin, 'quiet', chooseSkin),
        button(texts.past, 'quiet', () => perform('past')),
        document.fullscreenEnabled ? button(texts.fullscreen, 'quiet', () => perform('fullscreen')) : null,
        button(texts.invite, 'quiet', invite),
        button(texts.otherDevice, 'quiet', takeKey),
        this.leave,
        licenses(texts.licenses),
      ),
      settings: el(
        'div',
        'rows',
        ...rows,
        languageRow(settings, changed),
        packRow(settings, changed),
        flag('worldTextures', texts.worldTextures, el('small', 'muted', texts.needsReload)),
        flag('invert', texts.invert),
        flag('adaptive', texts.adaptive, this.effectiveQuality),
        flag('smoothEdges', texts.smoothEdges, el('small', 'muted', texts.needsReload)),
        flag('horizon', texts.horizon),
        flag('sound', texts.sound),
        flag('weather', texts.weather),
        flag('autoJump', texts.autoJump),
        flag('hints', texts.hints),
      ),
      keys: el('div', 'rows', keys, ...help.lists),
    }
    const open = (name: Tab) => {
      for (const tab of TABS) {
        show(pages[tab], tab === name)
        tabs[tab].ariaSelected = String(tab === name)
        tabs[tab].tabIndex = tab === name ? 0 : -1
      }
      if (name === 'keys' && !this.bindings)
        void import('./key-bindings').then(
          ({ KeyBindings }) => keys.replaceChildren((this.bindings ??= new KeyBindings(settings, rebound)).root),
          () => keys.replaceChildren(commonTexts.partMissing),
        )
    }
    const tabOf = (name: Tab) => {
      const tab = button(texts.tabs[name], 'quiet', () => open(name))
      tab.setAttribute('role', 'tab')
      tab.id = `tab-${name}`
      pages[name].setAttribute('role', 'tabpanel')
      pages[name].setAttribute('aria-labelledby', tab.id)
      return tab
    }
    const tabs = { game: tabOf('game'), settings: tabOf('settings'), keys: tabOf('keys') }
    this.tabs = el('div', 'tabs', ...Object.values(tabs))
    this.tabs.setAttribute('role', 'tablist')
    open('game')
    const panel = el(
      'div',
      'panel menu',
      el('h2', '', texts.title),
      this.world,
      button(texts.resume, 'primary', resume),
      this.tabs,
      ...Object.values(pages),
    )
    this.dialog = new Dialog(texts.title, resume, panel)
    this.root = this.dialog.root
  }

  key(event: KeyboardEvent): boolean {
    if (this.bindings?.key(event)) return true
    const steps = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0
    return steps !== 0 && this.tabs.contains(document.activeElement) && adjustFocused(steps)
  }

  toggle(open: boolean): void {
    this.leave.textContent = texts.leave
    this.asked = false
    for (const [box, key] of this.boxes) box.checked = this.settings[key] // keys change some of them
    this.dialog.toggle(open)
  }

  /** Shows the world, and the quality in effect if it is lower than the settings. */
  showStatus({ welcome, quality: { view, renderScale } }: MenuStatus): void {
    const lowered = view < this.settings.view || renderScale < this.settings.renderScale
    if (welcome) this.world.textContent = texts.inWorld(welcome.name, welcome.guest, welcome.world_name)
    this.effectiveQuality.textContent = lowered ? texts.lowered(view, percent(renderScale)) : ''
  }
}
