// The dialog that asks whether a rollback is to be carried out, with a picture of the land from above: north is up.

import type { Frame } from '../map/frame'
import { MapLand } from '../map/land'
import { LoadedLand } from '../map/loaded-land'
import { drawPointer, type Place } from '../map/marks'
import { fromBase64 } from '../net/bytes'
import { MAX_PREVIEW_CHUNKS, type PreviewChunk, type RollbackPreview } from '../net/protocol'
import { context2D } from '../render/canvas'
import { laterTexts } from '../text/later-texts'
import type { Box } from '../world/claims'
import { SIZE as CHUNK } from '../world/coords'
import type { World } from '../world/world'
import { Dialog } from './dialog'
import { button, el, show } from './dom'
import './rollback.css'

const texts = laterTexts.rollback
const SIZE = 640 // pixels of the canvas
const MARGIN = 0.08 // of the box's longer side, on each side
const SMALLEST_MARK = 4 // pixels of a column that would change
const EDGE = 16 // pixels between the edge and the player's arrow

interface Shown {
  preview: RollbackPreview
  frame: Frame
  columns: [x: number, z: number][]
  loaded: LoadedLand
}

export class RollbackDialog {
  readonly root: HTMLElement
  private readonly dialog: Dialog
  private readonly title = el('h2')
  private readonly area = el('p', 'muted')
  private readonly incomplete = el('p', 'error', texts.incomplete)
  private readonly canvas = el('canvas')
  private readonly context: CanvasRenderingContext2D
  private readonly land = new MapLand(() => undefined) // it is drawn again and again
  private shown: Shown | null = null

  constructor(confirm: () => void, cancel: () => void) {
    this.canvas.width = this.canvas.height = SIZE
    this.canvas.setAttribute('role', 'img')
    this.context = context2D(this.canvas)
    const panel = el(
      'div',
      'panel rollback',
      this.title,
      this.area,
      this.canvas,
      el(
        'ul',
        'rollback-legend muted',
        el('li', '', el('i', 'swatch change'), texts.changedBack),
        el('li', '', el('i', 'swatch border'), texts.area),
        el('li', '', el('i', 'swatch self'), texts.you),
      ),
      this.incomplete,
      el('footer', '', button(texts.undo, 'primary', confirm), button(laterTexts.cancel, 'quiet', cancel)),
    )
    this.dialog = new Dialog(texts.title, cancel, panel)
    this.root = this.dialog.root
  }

  toggle(open: boolean): void {
    this.dialog.toggle(open)
    if (!open) this.shown = null
  }

  /** Asks whether to undo what a preview has. */
  ask(preview: RollbackPreview, world: World): void {
    const { of, blocks, min, max } = preview
    const columns = columnsOf(preview.columns ?? [])
    const frame = frameOf(preview, SIZE)
    this.shown = { preview, frame, columns, loaded: new LoadedLand(world) }
    this.title.textContent = texts.ask(blocks, of === '*' ? null : of.replaceAll(',', ', '))
    this.area.textContent = texts.between(min.join(', '), max.join(', '))
    show(this.incomplete, (preview.columns?.length ?? 0) >= MAX_PREVIEW_CHUNKS)
    this.canvas.setAttribute('aria-label', texts.picture(blocks, columns.length))
  }

  /** The number of tiles of the land that are there. */
  get tiles(): number {
    return this.land.progress.there
  }

  /** Draws the picture again: more of the land may be known. Base is the address of the surface tiles. */
  draw(base: string, self: Place, now: number): void {
    if (!this.shown) return
    const { context, land } = this
    const { preview, frame, columns, loaded } = this.shown
    land.update(base, frame, now)
    const { scale } = frame
    const across = (block: number) => (block - frame.x) * scale
    const down = (block: number) => (block - frame.z) * scale
    context.fillStyle = '#10151c'
    context.fillRect(0, 0, SIZE, SIZE)
    land.draw(context, frame)
    context.imageSmoothingEnabled = false
    loaded.draw(context, frame)

    const left = across(preview.min[0])
    const top = down(preview.min[2])
    const width = across(preview.max[0] + 1) - left
    const height = down(preview.max[2] + 1) - top
    context.fillStyle = 'rgb(8 12 18 / 30%)' // so that the changes stand out
    context.fillRect(0, 0, SIZE, SIZE)
    context.beginPath()
    context.rect(0, 0, SIZE, SIZE)
    context.rect(left, top, width, height)
    context.fillStyle = 'rgb(8 12 18 / 45%)'
    context.fill('evenodd')

    const side = Math.max(scale, SMALLEST_MARK)
    for (const [colour, more] of [
      ['rgb(0 0 0 / 55%)', 2],
      ['#ff4b3e', 0],
    ] as const) {
      context.fillStyle = colour
      for (const [x, z] of columns) {
        const middle = [across(x + 0.5), down(z + 0.5)] as const
        context.fillRect(middle[0] - side / 2 - more, middle[1] - side / 2 - more, side + 2 * more, side + 2 * more)
      }
    }
    context.lineWidth = 2
    context.setLineDash([9, 6])
    context.strokeStyle = 'rgb(255 255 255 / 90%)'
    context.strokeRect(left, top, width, height)
    context.setLineDash([])
    const within = (at: number) => Math.min(Math.max(at, EDGE), SIZE - EDGE)
    drawPointer(context, within(across(self.x)), within(down(self.z)), self.yaw)
  }
}

/** Returns the columns of blocks that have a bit. */
export function columnsOf(chunks: PreviewChunk[]): [x: number, z: number][] {
  return chunks.flatMap(({ x, z, bits }) => {
    const bytes = typeof bits === 'string' ? fromBase64(bits) : bits
    return Array.from({ length: CHUNK * CHUNK }, (_, i) => i)
      .filter((i) => (bytes[i >> 3] ?? 0) & (1 << (i & 7)))
      .map((i): [number, number] => [x * CHUNK + (i % CHUNK), z * CHUNK + Math.floor(i / CHUNK)])
  })
}

/** Returns the frame of a canvas of so many pixels that has a box in its middle, and begins at a whole block. */
export function frameOf({ min, max }: Box, pixels: number): Frame {
  const width = max[0] - min[0] + 1
  const length = max[2] - min[2] + 1
  const side = Math.ceil(Math.max(width, length) * (1 + 2 * MARGIN)) + 1
  return {
    x: min[0] - Math.floor((side - width) / 2),
    z: min[2] - Math.floor((side - length) / 2),
    scale: pixels / side,
    width: pixels,
    height: pixels,
  }
}
