// The land of the map: pictures of the surface tiles that also make the horizon, fetched for the part that is looked at.

import { TileLoader, type Fetch } from '../horizon/loader'
import { nameOf, sideOf, type TileKey } from '../horizon/quadtree'
import { CELLS, POINTS, SQUARE, decodeTile, type Tile } from '../horizon/tile'
import { context2D } from '../render/canvas'
import { colourOf } from '../render/block-colour'
import { across, down, pointOf, tilesIn, type Frame } from './frame'
import { drawPoints, lightOf } from './shading'

const MAX_IMAGES = 256
const BUILT_LIGHT = 1.15

interface Shown {
  key: TileKey
  image: HTMLCanvasElement
  heights: Uint16Array
}

export class MapLand {
  private readonly shown = new Map<string, Shown>() // the newest are the last
  private readonly loader: TileLoader
  private wanted: TileKey[] = []
  private named = ''

  /** changed is called when there is more to draw. */
  constructor(changed: () => void, load?: Fetch) {
    this.loader = new TileLoader((key, bytes) => {
      this.add(key, bytes)
      changed()
    }, load)
  }

  /** The number of tiles that are wanted, and of those that are there. */
  get progress(): { wanted: number; there: number } {
    return { wanted: this.wanted.length, there: this.wanted.filter((key) => this.shown.has(nameOf(key))).length }
  }

  /** Fetches what is in a frame from the gateway with that address of surface tiles. Called as long as it is shown. */
  update(base: string, frame: Frame, now: number): void {
    const wanted = tilesIn(frame)
    const named = wanted.map(nameOf).join()
    if (named !== this.named) {
      this.named = named
      this.wanted = wanted
      this.loader.want(wanted)
    }
    this.loader.update(base, now)
  }

  /** Draws the tiles in a frame; where the right ones are not there yet, others. */
  draw(context: CanvasRenderingContext2D, frame: Frame): void {
    const level = tilesIn(frame)[0]?.level ?? 0
    const others = [...this.shown.values()].sort((a, b) => b.key.level - a.key.level)
    const last = (tile: Shown) => tile.key.level === level
    for (const tile of [...others.filter((tile) => !last(tile)), ...others.filter(last)]) drawIn(context, frame, tile)
  }

  /** Returns the height of the land around a block, or null if it is not known. */
  heightAt(x: number, z: number): number | null {
    for (let level = 0; level < 3; level++) {
      const side = sideOf(level)
      const key = { level, x: Math.floor(x / side), z: Math.floor(z / side) }
      const tile = this.shown.get(nameOf(key))
      if (!tile) continue
      const at = pointOf(key, x, z)
      return Math.max(...[at, at + 1, at + POINTS, at + POINTS + 1].map((i) => tile.heights[i] ?? 0))
    }
    return null
  }

  private add(key: TileKey, bytes: Uint8Array): void {
    const name = nameOf(key)
    try {
      const tile = decodeTile(key.level, bytes)
      this.shown.delete(name)
      this.shown.set(name, { key, image: drawTile(tile), heights: tile.heights })
    } catch (reason) {
      console.warn('A surface tile is invalid:', reason)
      return
    }
    for (const oldest of this.shown.keys()) {
      if (this.shown.size <= MAX_IMAGES) break
      this.shown.delete(oldest)
      this.loader.forget(oldest)
    }
  }
}

function drawIn(context: CanvasRenderingContext2D, frame: Frame, { key, image }: Shown): void {
  const side = sideOf(key.level)
  const left = Math.round(across(frame, key.x * side))
  const top = Math.round(down(frame, key.z * side))
  const right = Math.round(across(frame, (key.x + 1) * side))
  const bottom = Math.round(down(frame, (key.z + 1) * side))
  if (left > frame.width || top > frame.height || right < 0 || bottom < 0) return
  context.imageSmoothingEnabled = true
  // from the middle of the first pixel to that of the last one, which is the first of the next tile
  context.drawImage(image, 0.5, 0.5, CELLS, CELLS, left, top, right - left, bottom - top)
}

/** Returns a picture with a pixel for each point. */
function drawTile({ level, heights, blocks, built }: Tile): HTMLCanvasElement {
  const step = SQUARE << level
  const at = (x: number, z: number) => heights[z * POINTS + x] ?? 0
  const image = drawPoints(POINTS, (x, z) => {
    const [lx, lz] = [Math.min(x, CELLS - 1), Math.min(z, CELLS - 1)] // the last ones have no neighbour here
    const east = (at(lx + 1, z) - at(lx, z)) / step
    const south = (at(x, lz + 1) - at(x, lz)) / step
    return { block: blocks[z * POINTS + x] ?? 0, light: lightOf(at(x, z), east, south) }
  })
  const context = context2D(image)
  for (const { x, z, length, block } of built) {
    context.fillStyle = `rgb(${colourOf(block)
      .map((c) => Math.min(255, Math.round(c * BUILT_LIGHT)))
      .join()})`
    context.fillRect(x >> level, z >> level, Math.max(1, length >> level), 1)
  }
  return image
}
