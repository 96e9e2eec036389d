// The dialog in which players choose how they look: two colours and a pattern.

import { PATTERNS, appearanceOf, setSkin } from '../render/figure'
import { drawPortrait, isSecond } from '../render/portrait'
import { laterTexts } from '../text/later-texts'
import { Dialog } from './dialog'
import { button, el } from './dom'
import './skin.css'

const PLAIN = 1 // the first pattern
const COLUMNS = 16
const ROWS = 8

/** Shows the dialog over the others, for a player who has a skin. chosen is called with the new one when they close it. */
export function showSkin(parent: HTMLElement, player: string, skin: number, chosen: (skin: number) => void): void {
  const texts = laterTexts.skin
  const portrait = el('canvas', 'portrait')
  portrait.setAttribute('role', 'img')
  portrait.setAttribute('aria-label', texts.portrait)
  const [main, second] = [colourField(texts.main), colourField(texts.second)]
  const patterns = PATTERNS.slice(PLAIN).map((_, i) => {
    const box = el('input')
    box.type = 'radio'
    box.name = 'pattern'
    box.setAttribute('aria-label', texts.patterns[i] ?? '')
    const swatch = el('canvas')
    swatch.width = COLUMNS
    swatch.height = ROWS
    const label = el('label', 'pattern', box, swatch)
    label.title = texts.patterns[i] ?? ''
    return { pattern: i + PLAIN, box, swatch, label }
  })

  const group = el('div', 'patterns', ...patterns.map(({ label }) => label))
  group.setAttribute('role', 'radiogroup')
  group.setAttribute('aria-label', texts.pattern)

  const draw = () => {
    setSkin(player, skin)
    const appearance = appearanceOf(player)
    drawPortrait(portrait, appearance)
    const shown = skin || given(appearance)
    main.value = hexOf(shown >>> 12)
    second.value = hexOf(shown)
    for (const { pattern, box, swatch } of patterns) {
      box.checked = pattern === skin >>> 24
      const context = swatch.getContext('2d')
      for (let y = 0; y < ROWS; y++)
        for (let x = 0; x < COLUMNS; x++) {
          if (!context) continue
          context.fillStyle = isSecond(pattern, x % 8, y) ? second.value : main.value
          context.fillRect(x, ROWS - 1 - y, 1, 1)
        }
    }
  }
  const choose = (pattern: number) => {
    skin = skinOf(pattern, main.value, second.value)
    draw()
  }
  for (const field of [main, second]) field.addEventListener('input', () => choose(skin >>> 24 || PLAIN))
  for (const { pattern, box } of patterns) box.addEventListener('change', () => choose(pattern))
  const any = button(texts.any, 'quiet', () => {
    skin = (((PLAIN + Math.floor(Math.random() * patterns.length)) << 24) | (Math.random() * 2 ** 24)) >>> 0
    draw()
  })
  const none = button(texts.none, 'quiet', () => {
    skin = 0
    draw()
  })
  const close = () => {
    dialog.toggle(false)
    dialog.root.remove()
    chosen(skin)
  }
  const dialog = new Dialog(
    texts.title,
    close,
    el(
      'div',
      'panel skin-dialog',
      el('h2', '', texts.title),
      portrait,
      el(
        'div',
        'rows',
        el('label', 'row', el('span', '', texts.main), main),
        el('label', 'row', el('span', '', texts.second), second),
        group,
        any,
        none,
      ),
      button(laterTexts.close, 'primary', close),
    ),
  )
  draw()
  parent.append(dialog.root)
  dialog.toggle(true)
}

function colourField(label: string): HTMLInputElement {
  const field = el('input')
  field.type = 'color'
  field.setAttribute('aria-label', label)
  return field
}

/** Returns the skin nearest to colours as #rrggbb. */
export function skinOf(pattern: number, main: string, second: string): number {
  return [...channels(main), ...channels(second)].reduce((sum, value) => sum * 16 + Math.round(value / 17), pattern)
}

function channels(colour: string): number[] {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16))
}

/** Returns the colours of an appearance that a player's id gave, as in a skin. */
function given({ shirt, accent }: { shirt: readonly number[]; accent: readonly number[] }): number {
  return [...shirt.slice(0, 3), ...accent.slice(0, 3)].reduce((sum, value) => sum * 16 + Math.round(value / 17), 0)
}

/** Returns 12 bits of a skin as #rrggbb. */
function hexOf(bits: number): string {
  return `#${[8, 4, 0].map((shift) => ((bits >> shift) & 15).toString(16).repeat(2)).join('')}`
}
