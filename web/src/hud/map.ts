// The map of the world: the land from above, and what is known of it. It is drawn only while it is open.

import { MAX_BOOKMARKS, MAX_NAME, type Bookmark, type Bookmarks } from '../map/bookmarks'
import { laterTexts } from '../text/later-texts'
import { Dialog } from './dialog'
import { button, el, find, show } from './dom'
import { HostLayer } from './host-layer'
import { MapCanvas, type MapScene } from './map-canvas'
import './map.css'

const texts = laterTexts.map
const FIRST_SCALE = 1.5 // pixels of a block

export interface WorldMapEvents {
  scene(): Omit<MapScene, 'bookmarks'>
  bookmarks(): Bookmarks
  /** The peer id of the node that serves the session. */
  gateway(): string
  /** Returns the height of the land at a block, or null if it is not known. */
  heightAt(x: number, z: number): number | null
  /** Returns a link to a place. */
  link(place: Omit<Bookmark, 'name'>): string
  /** Goes to a place. */
  go(place: Omit<Bookmark, 'name'>): void
  /** Goes home, or to where players begin. */
  travel(command: 'home' | 'spawn'): void
  mayUse(command: string): boolean
  /** Reports whether the player may go to any place now. */
  mayGo(): boolean
  close(): void
}

export class WorldMap {
  readonly root: HTMLElement
  readonly map: MapCanvas
  private readonly dialog: Dialog
  private readonly hosts: HostLayer
  private readonly pointer = el('p', 'map-pointer')
  private readonly state = el('p', 'muted')
  private readonly place = el('section', 'map-place hidden')
  private readonly list = el('ul', 'map-bookmarks')
  private readonly travels = el('div', 'map-buttons')
  private opened = false

  constructor(private readonly events: WorldMapEvents) {
    this.map = new MapCanvas({
      scene: () => ({ ...events.scene(), bookmarks: events.bookmarks().all }),
      pointed: (x, z) => this.showPointer(x, z),
      selected: (x, z) => this.showPlace(x, z),
      drawn: () => this.showState(),
    })
    this.hosts = new HostLayer(this.map, () => events.gateway())
    const { map } = this
    const panel = el(
      'div',
      'panel map',
      el(
        'div',
        'map-view',
        map.root,
        el(
          'div',
          'map-zoom',
          iconButton('+', texts.zoomIn, () => map.zoom(1.6)),
          iconButton('−', texts.zoomOut, () => map.zoom(1 / 1.6)),
          iconButton('◎', texts.centre, () => this.centre()),
        ),
      ),
      el(
        'aside',
        '',
        el(
          'header',
          '',
          el('h2', '', texts.title),
          button(laterTexts.close, 'quiet', () => events.close()),
        ),
        this.pointer,
        this.state,
        this.place,
        this.travels,
        this.hosts.root,
        el('h3', '', texts.bookmarks),
        this.list,
      ),
    )
    this.dialog = new Dialog(texts.title, () => events.close(), panel)
    this.root = this.dialog.root
  }

  toggle(open: boolean): void {
    if (open === this.opened) return
    this.opened = open
    this.dialog.toggle(open)
    if (!open) return
    this.map.view.setScale(FIRST_SCALE)
    this.map.selected = null
    show(this.place, false)
    this.centre()
    this.showBookmarks()
    this.showTravels()
    this.map.root.focus()
  }

  key(event: KeyboardEvent): boolean {
    return this.map.key(event)
  }

  /** Called some times a second while the map is open. */
  update(now: number): void {
    this.map.update(now)
  }

  private centre(): void {
    const { self } = this.events.scene()
    if (!self) return
    this.map.moveTo(self.x, self.z)
    this.showPointer(Math.floor(self.x), Math.floor(self.z))
  }

  private showPointer(x: number, z: number): void {
    const height = this.events.heightAt(x, z)
    this.pointer.textContent = height === null ? `x ${x}, z ${z}` : `x ${x}, z ${z}, ${texts.height(height)}`
  }

  private showState(): void {
    this.hosts.update()
    const { wanted, there } = this.map.land.progress
    const { players, claims } = this.events.scene()
    const parts = [texts.players(players.length), texts.claims(claims.length)]
    if (there < wanted) parts.push(texts.loading)
    const text = parts.join(' · ')
    if (this.state.textContent !== text) this.state.textContent = text
  }

  /** Shows what can be done with a block that was clicked. */
  private showPlace(x: number, z: number): void {
    const place = { x, y: (this.events.heightAt(x, z) ?? 0) + 1, z }
    const name = el('input', 'field')
    name.maxLength = MAX_NAME
    name.placeholder = texts.bookmarkName
    name.setAttribute('aria-label', texts.bookmarkName)
    const form = el('form', 'map-name', name, el('button', 'quiet', texts.bookmark))
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      const added = this.events.bookmarks().add({ ...place, name: name.value || `${x}, ${z}` })
      if (!added) {
        this.state.textContent = texts.manyBookmarks(MAX_BOOKMARKS)
        return
      }
      name.value = ''
      this.showBookmarks()
      this.map.refresh()
    })
    this.place.replaceChildren(
      el('h3', '', `${place.x}, ${place.y}, ${place.z}`),
      el('div', 'map-buttons', ...this.actions(place)),
      form,
    )
    show(this.place, true)
    this.place.scrollIntoView({ block: 'nearest' })
  }

  private actions(place: Omit<Bookmark, 'name'>): HTMLElement[] {
    const link = this.events.link(place)
    const anchor = el('a', 'quiet', texts.link)
    anchor.href = link
    anchor.target = '_blank'
    const copy = button(texts.copyLink, 'quiet', () => {
      void navigator.clipboard.writeText(link).then(() => (copy.textContent = laterTexts.copied))
    })
    const go = button(texts.go, 'primary', () => this.events.go(place))
    const may = this.events.mayGo()
    // pages over plain http have no clipboard
    return [...(may ? [go] : []), window.isSecureContext ? copy : anchor]
  }

  private showBookmarks(): void {
    const bookmarks = this.events.bookmarks()
    const rows = bookmarks.all.map((bookmark) => {
      const shown = button(bookmark.name, 'map-bookmark', () => {
        this.map.moveTo(bookmark.x, bookmark.z)
        this.map.select(bookmark.x, bookmark.z)
      })
      const remove = iconButton('✕', texts.deleteBookmark(bookmark.name), () => {
        bookmarks.remove(bookmark)
        this.showBookmarks()
        this.map.refresh()
        find(this.root, 'canvas').focus()
      })
      return el('li', '', shown, remove)
    })
    this.list.replaceChildren(...(rows.length > 0 ? rows : [el('li', 'muted', texts.noBookmarks)]))
  }

  private showTravels(): void {
    const travel = (command: 'home' | 'spawn', label: string) =>
      this.events.mayUse(command) ? [button(label, 'quiet', () => this.events.travel(command))] : []
    this.travels.replaceChildren(...travel('home', texts.goHome), ...travel('spawn', texts.goToSpawn))
  }
}

function iconButton(icon: string, label: string, press: () => void): HTMLButtonElement {
  const element = button(icon, 'quiet', press)
  element.setAttribute('aria-label', label)
  element.title = label
  return element
}
