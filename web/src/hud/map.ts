// The map of the surroundings, with the players on it: north is up. It is drawn only while it is open.

import type { Tile } from '../net/surroundings'
import { context2D } from '../render/canvas'
import { appearanceOf } from '../render/figure'
import { drawTiles } from '../render/map-tile'
import { el, show } from './dom'

const SIZE = 512 // pixels of the canvas
const BLOCKS_PER_PIXEL = 2

export interface Marked {
  player: string
  name: string
  x: number
  z: number
}

export interface Place {
  x: number
  y: number
  z: number
  yaw: number
}

export class WorldMap {
  readonly root: HTMLElement
  /** How far the map reaches from the player, in blocks. */
  readonly reach = (SIZE * BLOCKS_PER_PIXEL) / 2
  open = false
  private readonly canvas = el('canvas')
  private readonly context: CanvasRenderingContext2D
  private readonly position = el('span', 'grow')
  private readonly state = el('span', 'muted')

  constructor() {
    this.canvas.width = this.canvas.height = SIZE
    this.canvas.setAttribute('role', 'img')
    this.canvas.setAttribute('aria-label', 'Map of the surroundings')
    this.context = context2D(this.canvas)
    this.root = el('div', 'panel map hidden', this.canvas, el('footer', '', this.position, this.state))
  }

  toggle(open: boolean): void {
    this.open = open
    show(this.root, open)
  }

  /** Shows the land around the own player, whose place is self. */
  show(tiles: ReadonlyMap<string, Tile>, self: Place, others: Marked[], state: string): void {
    const { context } = this
    context.fillStyle = '#10151c'
    context.fillRect(0, 0, SIZE, SIZE)
    const across = (block: number) => SIZE / 2 + (block - self.x) / BLOCKS_PER_PIXEL
    const down = (block: number) => SIZE / 2 + (block - self.z) / BLOCKS_PER_PIXEL
    drawTiles(context, tiles, { x: self.x - this.reach, z: self.z - this.reach, scale: 1 / BLOCKS_PER_PIXEL }, SIZE)
    for (const other of others) this.mark(across(other.x), down(other.z), other)
    drawPointer(context, SIZE / 2, SIZE / 2, self.yaw)
    this.position.textContent = `${Math.floor(self.x)}, ${Math.floor(self.y)}, ${Math.floor(self.z)}`
    this.state.textContent = state
    const who = others.length === 1 ? '1 other player' : `${others.length} other players`
    this.canvas.setAttribute('aria-label', `Map of the surroundings, with ${who}`)
  }

  private mark(x: number, y: number, { player, name }: Marked): void {
    const { context } = this
    const edge = 7
    const inside = x > edge && y > edge && x < SIZE - edge && y < SIZE - edge
    const px = Math.min(Math.max(x, edge), SIZE - edge) // who is farther away is marked at the edge
    const py = Math.min(Math.max(y, edge), SIZE - edge)
    context.beginPath()
    context.arc(px, py, inside ? 5 : 3.5, 0, 2 * Math.PI)
    context.fillStyle = appearanceOf(player).css
    context.fill()
    context.lineWidth = 2
    context.strokeStyle = '#fff'
    context.stroke()
    if (!inside) return
    context.font = '600 16px system-ui, sans-serif'
    context.textAlign = 'center'
    context.lineWidth = 4
    context.strokeStyle = 'rgb(0 0 0 / 70%)'
    context.strokeText(name, px, py - 10)
    context.fillStyle = '#fff'
    context.fillText(name, px, py - 10)
  }
}

/** Draws the own player, as an arrow. */
export function drawPointer(context: CanvasRenderingContext2D, x: number, y: number, yaw: number): void {
  context.save()
  context.translate(x, y)
  context.rotate(Math.PI + yaw) // yaw 0 is south
  context.beginPath()
  context.moveTo(0, -14)
  context.lineTo(10, 11)
  context.lineTo(0, 6)
  context.lineTo(-10, 11)
  context.closePath()
  context.fillStyle = '#fff'
  context.fill()
  context.lineWidth = 2
  context.strokeStyle = 'rgb(0 0 0 / 75%)'
  context.stroke()
  context.restore()
}
