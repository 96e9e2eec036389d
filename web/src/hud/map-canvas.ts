// The canvas of the map: mouse, fingers and keys move it. It is drawn when something has changed.

import { MapView, type Point } from '../map/frame'
import { Hosts } from '../map/hosts'
import { MapLand } from '../map/land'
import type { LoadedLand } from '../map/loaded-land'
import type { Bookmark } from '../map/bookmarks'
import {
  drawBookmark,
  drawClaim,
  drawPlayer,
  drawScale,
  drawSelected,
  drawSelf,
  type Marked,
  type Place,
} from '../map/marks'
import { context2D } from '../render/canvas'
import { laterTexts } from '../text/later-texts'
import type { Claim } from '../world/claims'
import { el } from './dom'

const KEY_PAN = 80 // pixels
const KEY_ZOOM = 1.5
const WHEEL_ZOOM = 0.0018 // of a pixel's turn
const TAP = 6 // pixels that a finger or the mouse may move while it taps

/** What the map shows beside the land. */
export interface MapScene {
  /** The address of the surface tiles. */
  base: string
  loaded: LoadedLand | null
  self: Place | null
  players: readonly Marked[]
  claims: readonly Claim[]
  bookmarks: readonly Bookmark[]
}

export interface MapEvents {
  scene(): MapScene
  /** The mouse is at a block. */
  pointed(x: number, z: number): void
  /** A block was clicked. */
  selected(x: number, z: number): void
  /** The map was drawn. */
  drawn(): void
}

export class MapCanvas {
  readonly root = el('canvas', 'map-canvas')
  readonly view = new MapView()
  readonly land = new MapLand(() => this.refresh())
  readonly hosts = new Hosts(() => this.refresh())
  showHosts = false
  /** The block that is selected. */
  selected: { x: number; z: number } | null = null
  private readonly context = context2D(this.root)
  private readonly pointers = new Map<number, Point>()
  private moved = 0 // pixels since the first pointer went down
  private requested = false

  constructor(private readonly events: MapEvents) {
    const { root } = this
    root.tabIndex = 0
    root.setAttribute('role', 'application')
    root.setAttribute('aria-label', laterTexts.map.canvas)
    root.addEventListener('pointerdown', (event) => this.pointerDown(event))
    root.addEventListener('pointermove', (event) => this.pointerMove(event))
    root.addEventListener('pointerup', (event) => this.pointerUp(event))
    root.addEventListener('pointercancel', (event) => this.pointers.delete(event.pointerId))
    root.addEventListener('wheel', (event) => this.wheel(event), { passive: false })
    new ResizeObserver(() => this.resize()).observe(root)
  }

  /** Zooms about the middle. */
  zoom(factor: number): void {
    this.view.zoom(factor)
    this.refresh()
  }

  moveTo(x: number, z: number): void {
    this.view.moveTo(x, z)
    this.refresh()
  }

  select(x: number, z: number): void {
    this.selected = { x: Math.floor(x), z: Math.floor(z) }
    this.events.selected(this.selected.x, this.selected.z)
    this.refresh()
  }

  /** Fetches what is due. Called some times a second while the map is open. */
  update(now: number): void {
    const { base } = this.events.scene()
    this.land.update(base, this.view.frame, now)
    if (this.showHosts) this.hosts.update(base, this.view.frame, now)
    this.refresh()
  }

  /** Draws the map with the next frame. */
  refresh(): void {
    if (this.requested) return
    this.requested = true
    requestAnimationFrame(() => {
      this.requested = false
      if (this.root.isConnected && this.root.clientWidth > 0) this.draw()
    })
  }

  private draw(): void {
    const { context, selected } = this
    const { frame } = this.view
    const { loaded, self, players, claims, bookmarks } = this.events.scene()
    const pixels = this.root.width / this.root.clientWidth
    context.setTransform(pixels, 0, 0, pixels, 0, 0)
    context.fillStyle = '#10151c'
    context.fillRect(0, 0, frame.width, frame.height)
    this.land.draw(context, frame)
    context.imageSmoothingEnabled = frame.scale < 1
    if (loaded && !loaded.draw(context, frame)) this.refresh()
    if (this.showHosts) this.hosts.draw(context, frame)
    for (const claim of claims) drawClaim(context, frame, claim)
    for (const bookmark of bookmarks) drawBookmark(context, frame, bookmark)
    for (const player of players) drawPlayer(context, frame, player)
    if (self) drawSelf(context, frame, self)
    if (selected) drawSelected(context, frame, selected.x, selected.z)
    drawScale(context, frame)
    this.events.drawn()
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.root
    if (clientWidth === 0) return
    const pixels = Math.min(window.devicePixelRatio, 2)
    this.root.width = Math.round(clientWidth * pixels)
    this.root.height = Math.round(clientHeight * pixels)
    this.view.resize({ width: clientWidth, height: clientHeight })
    this.refresh()
  }

  private pointerDown(event: PointerEvent): void {
    if (event.button !== 0 || this.pointers.size === 2) return
    if (this.pointers.size === 0) this.moved = 0
    this.root.setPointerCapture(event.pointerId)
    this.pointers.set(event.pointerId, placeOf(event))
  }

  private pointerMove(event: PointerEvent): void {
    const at = placeOf(event)
    const before = this.pointers.get(event.pointerId)
    if (before) this.drag(event.pointerId, before, at)
    const block = this.view.at(at)
    this.events.pointed(Math.floor(block.x), Math.floor(block.z))
  }

  private drag(id: number, before: Point, at: Point): void {
    this.moved += Math.hypot(at.x - before.x, at.y - before.y)
    const other = [...this.pointers].find(([one]) => one !== id)?.[1]
    this.pointers.set(id, at)
    if (other) this.pinch(before, at, other)
    else if (this.moved > TAP) this.view.pan(at.x - before.x, at.y - before.y)
    this.refresh()
  }

  private pinch(before: Point, at: Point, other: Point): void {
    this.moved = Infinity // it is no tap
    const factor = distance(at, other) / Math.max(1, distance(before, other))
    this.view.pan((at.x - before.x) / 2, (at.y - before.y) / 2)
    this.view.zoom(factor, { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 })
  }

  private pointerUp(event: PointerEvent): void {
    if (!this.pointers.delete(event.pointerId) || this.pointers.size > 0 || this.moved > TAP) return
    const { x, z } = this.view.at(placeOf(event))
    this.select(x, z)
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault()
    const turn = event.deltaMode === 1 ? event.deltaY * 40 : event.deltaY
    this.view.zoom(Math.exp(-WHEEL_ZOOM * Math.min(Math.max(turn, -400), 400)), placeOf(event))
    this.refresh()
  }

  /** Takes a key if the map has the focus; returns false if it has no use for it. */
  key(event: KeyboardEvent): boolean {
    const { view } = this
    const keys: Record<string, () => void> = {
      ArrowLeft: () => view.pan(KEY_PAN, 0),
      ArrowRight: () => view.pan(-KEY_PAN, 0),
      ArrowUp: () => view.pan(0, KEY_PAN),
      ArrowDown: () => view.pan(0, -KEY_PAN),
      '+': () => view.zoom(KEY_ZOOM),
      '=': () => view.zoom(KEY_ZOOM),
      '-': () => view.zoom(1 / KEY_ZOOM),
      Enter: () => this.select(view.x, view.z),
    }
    const act = keys[event.key]
    if (!act || event.target !== this.root || event.ctrlKey || event.metaKey || event.altKey) return false
    act()
    this.events.pointed(Math.floor(view.x), Math.floor(view.z))
    this.refresh()
    return true
  }
}

function placeOf({ offsetX, offsetY }: MouseEvent): Point {
  return { x: offsetX, y: offsetY }
}

function distance(a: Point, b: Point): number {
  return Math.hypot(a.x - b.x, a.y - b.y)
}
