// The land beyond the chunks that are loaded, as meshes of surface tiles. This module and what it imports are loaded after the near land.
// Owned by the main thread; a worker makes the meshes.

import { Attribute, Geometry, Index } from '../gl/geometry'
import { translation } from '../gl/matrix'
import { Mesh } from '../gl/mesh'
import { floor } from '../gl/shapes'
import { Texture, type TextureOptions } from '../gl/texture'
import { colourOf } from '../render/block-colour'
import { KINDS } from '../world/blocks'
import { TileLoader } from './loader'
import { FLOOR_MATERIAL, makeMaterial } from './material'
import type { TileMesh } from './mesh'
import { REACH, chooseShown, distanceTo, nameOf, sideOf, tilesAround, type TileKey } from './quadtree'
import { ShownMask } from './shown-mask'
import { POINTS } from './tile'
import type { TileJob, TileResult } from './horizon-worker'

const MAX_TILES = 112 // meshes that are kept
const MOVED = 48 // blocks after which the tiles are chosen anew
const LEAVES = 0.66 // how much darker than its blocks a crown is, which shades itself
const FADE = 900 // blocks a second by which the fog retreats

/** Where the land is seen from, and where its tiles are fetched. */
export interface Viewpoint {
  x: number
  z: number
  /** The address of the surface tiles. */
  base: string
}

interface Shown {
  key: TileKey
  mesh: Mesh
  textures: Texture[]
  built: number
  highest: number
}

export class Horizon {
  readonly meshes = new Set<Mesh>()
  readonly mask = new ShownMask()
  /** How far the land is shown without gaps, in blocks. */
  reach = 0
  private readonly tiles = new Map<string, Shown>()
  private readonly jobs = new Map<number, TileKey>()
  private readonly worker = new Worker(new URL('./horizon-worker.ts', import.meta.url), { type: 'module' })
  private readonly loader = new TileLoader((key, bytes) => this.build(key, bytes))
  private readonly palette = makePalette()
  /** Dark ground below everything, which is seen through the gap where far land is higher than the edge of the near land. */
  private readonly floor = new Mesh(floor(REACH), FLOOR_MATERIAL, 0.6)
  private wanted: TileKey[] = []
  private nextJob = 1
  private at = { x: Infinity, z: Infinity }
  private from: Viewpoint = { x: 0, z: 0, base: '' }
  private changed = true

  constructor() {
    this.meshes.add(this.floor)
    this.worker.onmessage = ({ data }: MessageEvent<TileResult>) => this.built(data)
  }

  /** Called once a frame. */
  update(from: Viewpoint, now: number, dt: number): void {
    this.from = from
    if (Math.hypot(from.x - this.at.x, from.z - this.at.z) > MOVED) {
      this.at = { x: from.x, z: from.z }
      this.wanted = tilesAround(from.x, from.z)
      this.loader.want(this.wanted)
      this.changed = true
    }
    this.floor.matrix = translation(from.x, 0, from.z)
    this.loader.update(from.base, now)
    this.mask.update(dt)
    if (this.changed) this.choose()
    const whole = this.wholeReach()
    this.reach = whole < this.reach ? whole : Math.min(whole, this.reach + FADE * dt)
  }

  /** The number of tiles that are wanted, and of those that are there. */
  get progress(): { wanted: number; there: number } {
    return { wanted: this.wanted.length, there: this.wanted.filter((key) => this.tiles.has(nameOf(key))).length }
  }

  /** The numbers of tiles and triangles in the last picture. */
  get drawn(): { calls: number; triangles: number } {
    const drawn = [...this.tiles.values()].filter(({ mesh }) => mesh.drawn)
    return { calls: drawn.length, triangles: drawn.reduce((sum, { mesh }) => sum + mesh.geometry.count / 3, 0) }
  }

  /** What is built on the tiles shown: the number of runs, and the height of the highest. */
  get buildings(): { built: number; highest: number } {
    const sum = { built: 0, highest: 0 }
    for (const { mesh, built, highest } of this.tiles.values()) {
      if (!mesh.visible) continue
      sum.built += built
      sum.highest = Math.max(sum.highest, highest)
    }
    return sum
  }

  dispose(): void {
    this.worker.terminate()
    this.floor.geometry.dispose()
    for (const name of [...this.tiles.keys()]) this.remove(name)
  }

  private choose(): void {
    this.changed = false
    const shown = chooseShown(this.at.x, this.at.z, (name) => this.tiles.has(name))
    for (const [name, { mesh }] of this.tiles) mesh.visible = shown.has(name)
    const farthest = [...this.tiles.values()]
      .filter(({ mesh }) => !mesh.visible)
      .sort((a, b) => distanceTo(b.key, this.at.x, this.at.z) - distanceTo(a.key, this.at.x, this.at.z))
    for (const { key } of farthest.slice(0, Math.max(0, this.tiles.size - MAX_TILES))) this.remove(nameOf(key))
  }

  /** Returns the distance up to which every tile is there. */
  private wholeReach(): number {
    const { x, z } = this.from
    let whole = REACH - MOVED
    for (const key of this.wanted) {
      if (!this.tiles.has(nameOf(key))) whole = Math.min(whole, distanceTo(key, x, z))
    }
    return whole
  }

  private build(key: TileKey, bytes: Uint8Array): void {
    const job: TileJob = { id: this.nextJob++, level: key.level, bytes, palette: this.palette }
    this.jobs.set(job.id, key)
    this.worker.postMessage(job, [bytes.buffer as ArrayBuffer])
  }

  private built({ id, mesh }: TileResult): void {
    const key = this.jobs.get(id)
    this.jobs.delete(id)
    if (!key || !mesh) return
    if (this.tiles.has(nameOf(key))) this.drop(nameOf(key))
    this.tiles.set(nameOf(key), this.show(key, mesh))
    this.changed = true
  }

  private show(key: TileKey, made: TileMesh): Shown {
    const geometry = new Geometry({
      attributes: {
        corner: new Attribute(made.corners, 4),
        colour: new Attribute(made.colours, 4, { normalized: true }),
      },
      index: new Index(made.index),
    })
    const side = sideOf(key.level)
    const surface = makeTexture(made.surface, { format: 'rgba8', enlarge: 'nearest' })
    const normals = makeTexture(made.normals, { format: 'rg8', enlarge: 'linear', anisotropy: 4 })
    // after the near land, which hides most of it
    const mesh = new Mesh(geometry, makeMaterial(key.level, { surface, normals }, this.mask.texture), 0.5)
    mesh.matrix = translation(key.x * side, 0, key.z * side)
    mesh.bounds = {
      middle: [side / 2, (made.low + made.high) / 2, side / 2],
      radius: Math.hypot(side / 2, (made.high - made.low) / 2, side / 2),
    }
    mesh.visible = false
    this.meshes.add(mesh)
    return { key, mesh, textures: [surface, normals], built: made.built, highest: made.highest }
  }

  private remove(name: string): void {
    this.drop(name)
    this.loader.forget(name)
  }

  private drop(name: string): void {
    const tile = this.tiles.get(name)
    if (!tile) return
    this.tiles.delete(name)
    this.meshes.delete(tile.mesh)
    tile.mesh.geometry.dispose()
    tile.mesh.geometry.index?.dispose()
    for (const texture of tile.textures) texture.dispose()
  }
}

function makePalette(): Uint8Array {
  const palette = new Uint8Array(3 * KINDS.length)
  for (const [block, { leafy }] of KINDS.entries()) {
    const shade = leafy ? LEAVES : 1
    palette.set(
      colourOf(block).map((value) => Math.round(value * shade)),
      3 * block,
    )
  }
  return palette
}

function makeTexture(data: Uint8Array, options: TextureOptions): Texture {
  return new Texture([{ data, width: POINTS, height: POINTS }], { ...options, mipmaps: 'made' })
}
