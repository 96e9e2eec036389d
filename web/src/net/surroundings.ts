// Asks the gateway who is near, and for tiles of the map: one question at a time, and only while somebody looks at the answers.

import { fromBase64 } from './bytes'
import type { FromClient, MapTile, NearbyList, Welcome } from './protocol'

/** Blocks along a side of a tile, and points. */
export const TILE_BLOCKS = 256
export const TILE_POINTS = 64

const LIST_MS = 2000 // between two lists of players
const FRESH_MS = 20_000 // a tile is asked for again after that,
const INCOMPLETE_MS = 4000 // or, if something is missing, after that
const PATIENCE_MS = 8000 // a question that is not answered is repeated after that
const MAX_TILES = 256

/** What is looked at: the list of players, and the map around a place. */
export interface Wanted {
  list: boolean
  map: boolean
  x: number
  z: number
  /** How far the map reaches from there, in blocks. */
  reach: number
}

export interface Tile {
  x: number
  z: number
  /** Two numbers a point: height and block id. */
  points: Uint16Array
  complete: boolean
  at: number
}

export class Surroundings {
  /** The latest list; null before the first. */
  nearby: NearbyList | null = null
  /** By `${x},${z}`. */
  readonly tiles = new Map<string, Tile>()
  supported = false
  private world = ''
  private listedAt = -Infinity
  private asked = -Infinity // when the question under way was sent
  private waiting = false
  private wanted: Wanted | null = null

  constructor(private readonly send: (message: FromClient) => void) {}

  /** Starts with a session. What is known of the world stays. */
  begin(welcome: Welcome): void {
    this.supported = welcome.map === true
    this.waiting = false
    this.nearby = null
    this.listedAt = -Infinity
    if (welcome.world !== this.world) this.tiles.clear()
    this.world = welcome.world
  }

  /** Asks the next question, if one is due. */
  look(wanted: Wanted, now: number): void {
    this.wanted = wanted
    if (!this.supported || (this.waiting && now - this.asked < PATIENCE_MS)) return
    const question = this.next(wanted, now)
    if (!question) return
    this.waiting = true
    this.asked = now
    this.send(question)
  }

  answer(message: NearbyList | MapTile, now: number): void {
    this.waiting = false
    if (message.type === 'nearby') {
      this.nearby = message
      this.listedAt = now
    } else this.keep(message, now)
    if (this.wanted) this.look(this.wanted, now)
  }

  private keep({ x, z, points, complete }: MapTile, now: number): void {
    const bytes = typeof points === 'string' ? fromBase64(points) : points
    const key = `${x},${z}`
    const before = this.tiles.get(key)
    this.tiles.delete(key) // the newest are the last
    const whole = bytes.length === TILE_POINTS * TILE_POINTS * 4
    const drawn = whole ? new Uint16Array(bytes.slice().buffer) : before?.points
    if (!drawn) return
    this.tiles.set(key, { x, z, points: drawn, complete: complete && whole, at: now })
    for (const oldest of this.tiles.keys()) {
      if (this.tiles.size <= MAX_TILES) break
      this.tiles.delete(oldest)
    }
  }

  private next(wanted: Wanted, now: number): FromClient | null {
    if ((wanted.list || wanted.map) && now - this.listedAt >= LIST_MS) {
      this.listedAt = now
      return { type: 'nearby' }
    }
    if (!wanted.map) return null
    const tile = tilesAround(wanted).find(([x, z]) => {
      const known = this.tiles.get(`${x},${z}`)
      return !known || now - known.at > (known.complete ? FRESH_MS : INCOMPLETE_MS)
    })
    return tile ? { type: 'map', x: tile[0], z: tile[1] } : null
  }
}

/** Returns the tiles of a map, the nearest to its middle first. */
export function tilesAround({ x, z, reach }: Pick<Wanted, 'x' | 'z' | 'reach'>): [x: number, z: number][] {
  const tileOf = (block: number) => Math.floor(block / TILE_BLOCKS)
  const tiles: [number, number][] = []
  for (let tz = tileOf(z - reach); tz <= tileOf(z + reach); tz++) {
    for (let tx = tileOf(x - reach); tx <= tileOf(x + reach); tx++) tiles.push([tx, tz])
  }
  const away = ([tx, tz]: [number, number]) => Math.hypot((tx + 0.5) * TILE_BLOCKS - x, (tz + 0.5) * TILE_BLOCKS - z)
  return tiles.sort((a, b) => away(a) - away(b))
}
