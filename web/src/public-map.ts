// The public map: the land and the nodes that host it, without a session and without WebGL.

import { el, find, show } from './hud/dom'
import { HostLayer } from './hud/host-layer'
import { MapCanvas } from './hud/map-canvas'
import { placeIn, placeLink } from './net/place-link'
import { laterTexts } from './text/later-texts'
import { texts } from './text/texts'
import './hud/style.css'
import './hud/map.css'

const INTERVAL_MS = 250
const FIRST_SCALE = 0.5 // pixels of a block

/** What the gateway says of its world. */
interface World {
  world: string
  node: string
  spawn: [x: number, y: number, z: number]
}

/** Fills the page. */
export async function start(): Promise<void> {
  const response = await fetch(new URL('map/world', location.href))
  if (!response.ok) throw new Error(`the world of the map: ${response.status}`)
  const { world, node, spawn } = (await response.json()) as World
  const pointer = el('p', 'map-pointer')
  const state = el('p', 'muted')
  const join = el('a', 'primary', texts.page.play)
  join.href = './'
  const map = new MapCanvas({
    scene: () => ({
      base: new URL('surface', location.href).href,
      loaded: null,
      self: null,
      players: [],
      claims: [],
      bookmarks: [],
    }),
    pointed: (x, z) => (pointer.textContent = describe(x, z)),
    selected: (x, z) => {
      join.href = placeLink(new URL('./', location.href).href, { x, y: (map.land.heightAt(x, z) ?? 0) + 1, z })
      join.textContent = laterTexts.map.playAt(x, z)
    },
    drawn: () => {
      hosts.update()
      const { wanted, there } = map.land.progress
      show(state, there < wanted)
      state.textContent = laterTexts.map.tiles(there, wanted)
    },
  })
  const describe = (x: number, z: number) => {
    const height = map.land.heightAt(x, z)
    return height === null ? `x ${x}, z ${z}` : `x ${x}, z ${z}, ${laterTexts.map.height(height)}`
  }
  const hosts = new HostLayer(map, () => node)
  window.addEventListener('keydown', (event) => {
    if (map.key(event)) event.preventDefault()
  })
  document.title = laterTexts.map.of(world)
  const view = el('div', 'map-view', map.root)
  find(document, 'main').append(view, el('aside', '', el('h1', 'map-title', world), pointer, state, join, hosts.root))
  map.view.setScale(FIRST_SCALE)
  const [x, , z] = placeIn(location.hash) ?? spawn
  map.moveTo(x, z)
  pointer.textContent = describe(x, z)
  setInterval(() => {
    if (!document.hidden) map.update(performance.now())
  }, INTERVAL_MS)
}
