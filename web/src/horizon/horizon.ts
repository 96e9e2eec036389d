// The land beyond the chunks that are loaded, as meshes of surface tiles. This module and what it imports are loaded after the near land.
// Owned by the main thread; a worker makes the meshes.

import {
  BufferAttribute,
  BufferGeometry,
  DataTexture,
  Group,
  LinearFilter,
  LinearMipmapLinearFilter,
  Mesh,
  NearestFilter,
  PlaneGeometry,
  RGBAFormat,
  RGFormat,
  Sphere,
  Vector3,
  type MagnificationTextureFilter,
  type PixelFormat,
  type RawShaderMaterial,
} from 'three'
import { colourOf } from '../render/block-colour'
import { kindOf } from '../world/blocks'
import { TileLoader } from './loader'
import { makeFloorMaterial, makeMaterial } from './material'
import type { TileMesh } from './mesh'
import { REACH, chooseShown, distanceTo, nameOf, sideOf, tilesAround, type TileKey } from './quadtree'
import { ShownMask } from './shown-mask'
import { POINTS } from './tile'
import type { TileJob, TileResult } from './horizon-worker'

const MAX_TILES = 112 // meshes that are kept
const MOVED = 48 // blocks after which the tiles are chosen anew
const PALETTE = 256 // blocks
const LEAVES = 0.66 // how much darker than its blocks a crown is, which shades itself
const FADE = 900 // blocks a second by which the fog retreats

/** Where the land is seen from, and where its tiles are fetched. */
export interface Viewpoint {
  x: number
  z: number
  /** The render origin. */
  originX: number
  originZ: number
  /** The address of the surface tiles. */
  base: string
}

interface Shown {
  key: TileKey
  mesh: Mesh<BufferGeometry, RawShaderMaterial>
  textures: DataTexture[]
  built: number
  highest: number
}

export class Horizon {
  readonly group = new Group()
  readonly mask = new ShownMask()
  /** How far the land is shown without gaps, in blocks. */
  reach = 0
  /** Of the last frame. */
  calls = 0
  triangles = 0
  private readonly tiles = new Map<string, Shown>()
  private readonly jobs = new Map<number, TileKey>()
  private readonly worker = new Worker(new URL('./horizon-worker.ts', import.meta.url), { type: 'module' })
  private readonly loader = new TileLoader((key, bytes) => this.build(key, bytes))
  private readonly palette = makePalette()
  /** Dark ground below everything, which is seen through the gap where far land is higher than the edge of the near land. */
  private readonly floor = new Mesh(new PlaneGeometry(2 * REACH, 2 * REACH).rotateX(-Math.PI / 2), makeFloorMaterial())
  private wanted: TileKey[] = []
  private nextJob = 1
  private at = { x: Infinity, z: Infinity }
  private from: Viewpoint = { x: 0, z: 0, originX: 0, originZ: 0, base: '' }
  private changed = true
  private counted = { calls: 0, triangles: 0 }

  constructor() {
    this.group.matrixAutoUpdate = false
    this.floor.frustumCulled = false
    this.floor.renderOrder = 0.6
    this.group.add(this.floor)
    this.worker.onmessage = ({ data }: MessageEvent<TileResult>) => this.built(data)
  }

  /** Called once a frame. */
  update(from: Viewpoint, now: number, dt: number): void {
    const moved = from.originX !== this.from.originX || from.originZ !== this.from.originZ
    this.from = from
    if (moved) for (const tile of this.tiles.values()) this.place(tile)
    if (Math.hypot(from.x - this.at.x, from.z - this.at.z) > MOVED) {
      this.at = { x: from.x, z: from.z }
      this.wanted = tilesAround(from.x, from.z)
      this.loader.want(this.wanted)
      this.changed = true
    }
    this.floor.position.set(from.x - from.originX, 0, from.z - from.originZ)
    this.loader.update(from.base, now)
    this.mask.update(dt)
    if (this.changed) this.choose()
    const whole = this.wholeReach()
    this.reach = whole < this.reach ? whole : Math.min(whole, this.reach + FADE * dt)
    this.calls = this.counted.calls
    this.triangles = this.counted.triangles
    this.counted = { calls: 0, triangles: 0 }
  }

  /** The number of tiles that are wanted, and of those that are there. */
  get progress(): { wanted: number; there: number } {
    return { wanted: this.wanted.length, there: this.wanted.filter((key) => this.tiles.has(nameOf(key))).length }
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
    this.floor.material.dispose()
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
    const geometry = new BufferGeometry()
    geometry.setAttribute('corner', new BufferAttribute(made.corners, 4))
    geometry.setAttribute('colour', new BufferAttribute(made.colours, 4, true))
    geometry.setIndex(new BufferAttribute(made.index, 1))
    const side = sideOf(key.level)
    const middle = new Vector3(side / 2, (made.low + made.high) / 2, side / 2)
    geometry.boundingSphere = new Sphere(middle, Math.hypot(side / 2, (made.high - made.low) / 2, side / 2))
    const surface = makeTexture(made.surface, RGBAFormat, NearestFilter)
    const normals = makeTexture(made.normals, RGFormat, LinearFilter)
    const mesh = new Mesh(geometry, makeMaterial(key.level, { surface, normals }, this.mask.texture))
    mesh.matrixAutoUpdate = false
    mesh.visible = false
    mesh.renderOrder = 0.5 // after the near land, which hides most of it
    const triangles = made.index.length / 3
    mesh.onBeforeRender = () => {
      this.counted.calls++
      this.counted.triangles += triangles
    }
    const shown = { key, mesh, textures: [surface, normals], built: made.built, highest: made.highest }
    this.place(shown)
    this.group.add(mesh)
    return shown
  }

  private place({ key, mesh }: Shown): void {
    const side = sideOf(key.level)
    mesh.position.set(key.x * side - this.from.originX, 0, key.z * side - this.from.originZ)
    mesh.updateMatrix()
    mesh.matrixWorldNeedsUpdate = true
  }

  private remove(name: string): void {
    this.drop(name)
    this.loader.forget(name)
  }

  private drop(name: string): void {
    const tile = this.tiles.get(name)
    if (!tile) return
    this.tiles.delete(name)
    this.group.remove(tile.mesh)
    tile.mesh.geometry.dispose()
    tile.mesh.material.dispose()
    for (const texture of tile.textures) texture.dispose()
  }
}

function makePalette(): Uint8Array {
  const palette = new Uint8Array(3 * PALETTE)
  for (let block = 0; block < PALETTE; block++) {
    const shade = /leaves/i.test(kindOf(block).name) ? LEAVES : 1
    palette.set(
      colourOf(block).map((value) => Math.round(value * shade)),
      3 * block,
    )
  }
  return palette
}

function makeTexture(data: Uint8Array, format: PixelFormat, magFilter: MagnificationTextureFilter): DataTexture {
  const texture = new DataTexture(data, POINTS, POINTS, format)
  texture.unpackAlignment = 1
  texture.magFilter = magFilter
  texture.minFilter = LinearMipmapLinearFilter
  texture.generateMipmaps = true
  texture.anisotropy = 4
  texture.needsUpdate = true
  return texture
}
