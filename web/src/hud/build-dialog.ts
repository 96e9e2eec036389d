// The panel with the building tools, and what is done to copies.

import type { Tool } from '../build/gesture'
import { laterTexts } from '../text/later-texts'
import './build.css'
import { Dialog } from './dialog'
import { button, el } from './dom'
import { strokeIcon } from './icon'

const ICONS = {
  line: 'M4 20L20 4',
  wall: 'M3 5h18v14H3zM3 12h18M9 5v7M15 12v7',
  box: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
  hollow: 'M3 3h18v18H3zM8 8h8v8H8z',
  sphere: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12c4 3 14 3 18 0',
  shell: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8',
  fill: 'M5 11l7-7 7 7-7 7zM5 11h14M20 15c1 1.5 1.5 2.3 1.5 3.2a1.5 1.5 0 0 1-3 0c0-.9.5-1.7 1.5-3.2z',
  clear: 'M4 4h16v16H4zM9 9l6 6M15 9l-6 6',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  paste: 'M8 5H5v16h14V5h-3M8 3h8v4H8zM9 12h6M9 16h6',
  undo: 'M9 14L4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3',
  redo: 'M15 14l5-5-5-5M20 9H10a6 6 0 0 0 0 12h3',
  save: 'M12 4v11M7 10l5 5 5-5M4 20h16',
  materials: 'M4 4h16v16H4zM4 9h16M4 14h16M12 4v16',
  open: 'M3 19V5h6l2 3h10v11z',
} as const

const texts = laterTexts.build
const TOOLS = [
  'line',
  'wall',
  'box',
  'hollow',
  'sphere',
  'shell',
  'fill',
  'clear',
  'copy',
  'paste',
] as const satisfies Tool[]

export interface BuildDialogEvents {
  chosen(tool: Tool): void
  undo(): void
  redo(): void
  save(): void
  saveMaterials(): void
  opened(file: File): void
  setReplaces(replaces: boolean): void
  close(): void
}

/** What is possible now. */
export interface BuildOptions {
  undo: boolean
  redo: boolean
  /** The number of blocks of the copy; 0 if there is none. */
  copied: number
}

export class BuildDialog {
  readonly root: HTMLElement
  private readonly dialog: Dialog
  private readonly buttons = new Map<keyof typeof ICONS, HTMLButtonElement>()
  private readonly what = el('p', 'muted', texts.about)
  private readonly file = el('input')

  constructor(events: BuildDialogEvents) {
    const { file, what } = this
    const act = (icon: keyof typeof ICONS, label: string, press: () => void, text = '') => {
      const element = button('', 'quiet', press)
      element.append(strokeIcon(ICONS[icon]), el('span', '', label))
      const explain = () => (what.textContent = text || texts.about)
      element.addEventListener('focus', explain)
      element.addEventListener('mouseenter', explain)
      this.buttons.set(icon, element)
      return element
    }
    file.type = 'file'
    file.accept = '.json,application/json'
    file.hidden = true
    file.addEventListener('change', () => {
      const [chosen] = file.files ?? []
      file.value = '' // the same file can be chosen again
      if (chosen) events.opened(chosen)
    })
    const replace = el('input')
    replace.type = 'checkbox'
    replace.addEventListener('change', () => events.setReplaces(replace.checked))
    const panel = el(
      'div',
      'panel build',
      el(
        'header',
        '',
        el('h2', '', texts.title),
        button(laterTexts.close, 'quiet', () => events.close()),
      ),
      el(
        'div',
        'build-tools',
        ...TOOLS.map((tool) => act(tool, texts.tools[tool], () => events.chosen(tool), texts.whatTools[tool])),
      ),
      what,
      el('label', 'check', replace, el('span', '', texts.replace)),
      el(
        'div',
        'build-actions',
        act('undo', texts.undo, () => events.undo()),
        act('redo', texts.redo, () => events.redo()),
        act('save', texts.save, () => events.save(), texts.whatSave),
        act('materials', texts.materials, () => events.saveMaterials(), texts.whatMaterials),
        act('open', texts.open, () => file.click(), texts.whatOpen),
      ),
      file,
    )
    this.dialog = new Dialog(texts.title, () => events.close(), panel)
    this.root = this.dialog.root
  }

  show({ undo, redo, copied }: BuildOptions): void {
    const possible = { undo, redo, save: copied > 0, materials: copied > 0, paste: copied > 0 }
    for (const [name, on] of Object.entries(possible)) {
      const element = this.buttons.get(name as keyof typeof possible)
      if (element) element.disabled = !on
    }
    this.what.textContent = copied > 0 ? `${texts.about} ${texts.copied(copied)}` : texts.about
  }

  toggle(open: boolean): void {
    this.dialog.toggle(open)
  }
}
