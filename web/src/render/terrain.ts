// The meshes of the land. All sections share a buffer on the GPU, and each pass is one draw call. Owned by the main thread.

import type { PerspectiveCamera } from '../gl/camera'
import { translation } from '../gl/matrix'
import type { Mesh } from '../gl/mesh'
import { CELL, CELLS } from '../mesh/cells'
import { GROUPS, PARTS, WORDS_PER_QUAD, startsOf, type SectionMesh } from '../mesh/mesher'
import type { MeshSink } from '../mesh/scheduler'
import { SIZE, chunkKey } from '../world/coords'
import { ALL_FACES, addRanges, facesTowards } from './facing'
import { Batch, PAGE_QUADS, QuadBuffer, type Pages } from './terrain-buffer'
import { makeTerrainMaterials, tileTexture } from './terrain-material'
import { TerrainVisibility, type Openings } from './terrain-visibility'

/** In blocks: within this distance, the faces between leaves and the back faces of cutout blocks are drawn. */
const NEAR = 48
/** In chunks: land farther away is not drawn. */
const MAX_RADIUS = 24
const ALL_CELLS = 255
const LEAST_PAGES = 2048 // 4 MB

type Pass = 'opaque' | 'cutout' | 'water'
/** The pass of each part. */
const PASS_OF = { opaque: 'opaque', cutout: 'cutout', thicket: 'cutout', water: 'water' } as const

interface Section {
  starts: Uint32Array // see SectionMesh
  pages: Pages
  quads: number
}

class Column implements Openings {
  readonly openings: (Uint8Array | undefined)[] = []
  readonly sections = new Map<number, Section>() // those that have quads

  constructor(
    readonly x: number,
    readonly z: number,
  ) {}
}

export class Terrain implements MeshSink {
  readonly tiles = { value: tileTexture() }
  readonly meshes: readonly Mesh[]
  private readonly columns = new Map<number, Column>()
  private readonly buffer: QuadBuffer
  private readonly origin = { value: [0, 0] }
  private readonly batches: Record<Pass, Batch>
  private readonly visibility = new TerrainVisibility()
  private readonly drawn = new Float64Array(19) // the camera of the last drawing, as its matrix and position
  /** Of each part of a section, for each cell the directions of the faces that are drawn, as bits. */
  private readonly directions = {
    opaque: new Uint8Array(CELLS),
    cutout: new Uint8Array(CELLS),
    thicket: new Uint8Array(CELLS),
    water: new Uint8Array(CELLS),
  }
  private changed = true
  private culling = true

  constructor(gl: WebGL2RenderingContext) {
    this.buffer = new QuadBuffer(gl, LEAST_PAGES)
    const materials = makeTerrainMaterials({ tiles: this.tiles, chunks: this.buffer.texture, origin: this.origin })
    this.batches = {
      opaque: new Batch(this.buffer, materials.opaque, 0),
      cutout: new Batch(this.buffer, materials.cutout, 1),
      water: new Batch(this.buffer, materials.water, 3),
    }
    this.meshes = Object.values(this.batches).map(({ mesh }) => mesh)
  }

  get quads(): number {
    let sum = 0
    for (const { sections } of this.columns.values()) for (const { quads } of sections.values()) sum += quads
    return sum
  }

  /** The size of the vertex buffer. */
  get bytes(): number {
    return this.buffer.bytes
  }

  show(x: number, z: number, section: number, mesh: SectionMesh): void {
    const key = chunkKey(x, z)
    let column = this.columns.get(key)
    if (!column) this.columns.set(key, (column = new Column(x, z)))
    const parts = PARTS.map((part) => mesh[part])
    const pages = this.buffer.put(x, z, parts, column.sections.get(section)?.pages ?? null)
    const quads = parts.reduce((sum, { length }) => sum + length, 0) / WORDS_PER_QUAD
    if (pages) column.sections.set(section, { starts: mesh.starts, pages, quads })
    else column.sections.delete(section)
    column.openings[section] = mesh.openings
    this.changed = true
  }

  remove(x: number, z: number): void {
    const column = this.columns.get(chunkKey(x, z))
    if (!column) return
    for (const { pages } of column.sections.values()) this.buffer.give(pages)
    this.columns.delete(chunkKey(x, z))
    if (this.columns.size === 0) this.buffer.clear()
    this.changed = true
  }

  /** Removes all meshes, when the GPU has lost them. */
  clear(): void {
    for (const { x, z } of [...this.columns.values()]) this.remove(x, z)
  }

  /** If on is false, all cells are drawn, to compare. */
  setCulling(on: boolean): void {
    this.culling = on
    this.changed = true
  }

  /** Chooses what can be seen by a camera, whose position in world blocks is (x, y, z); called before the meshes are drawn. */
  cull(camera: PerspectiveCamera, x: number, y: number, z: number): void {
    const matrix = camera.projectionOfRelative
    const now = [...matrix, x, y, z]
    if (!this.changed && now.every((value, i) => value === this.drawn[i])) return
    this.drawn.set(now)
    this.changed = false
    const chunkX = Math.floor(x / SIZE)
    const chunkZ = Math.floor(z / SIZE)
    const away = ({ x, z }: Column) => Math.max(Math.abs(x - chunkX), Math.abs(z - chunkZ))
    const columns = [...this.columns.values()].filter((column) => away(column) <= MAX_RADIUS)
    if (this.culling) {
      const radius = Math.max(0, ...columns.map(away))
      const sections = Math.max(0, ...columns.map(({ openings }) => openings.length))
      const at = (cx: number, cz: number) => this.columns.get(chunkKey(cx, cz))
      this.visibility.update([x, y, z], matrix, radius, sections, at)
    }
    const distance = (column: Column) => Math.hypot((column.x + 0.5) * SIZE - x, (column.z + 0.5) * SIZE - z)
    const { opaque, cutout, water } = this.batches
    // what is solid from front to back, so that hidden pixels are not drawn; water from back to front
    columns.sort((a, b) => distance(a) - distance(b))
    for (const column of columns) this.addColumn(column, x, y, z, false)
    for (const column of columns.reverse()) this.addColumn(column, x, y, z, true)
    for (const batch of [opaque, cutout, water]) batch.finish()
    // relative to the camera's chunk, so that nothing jitters far from the centre of the world
    this.origin.value = [(chunkX << 16) >> 16, (chunkZ << 16) >> 16]
    for (const mesh of this.meshes) mesh.matrix = translation(chunkX * SIZE, 0, chunkZ * SIZE)
  }

  /** Draws what can be seen of a column: its water, or all else. */
  private addColumn(column: Column, x: number, y: number, z: number, water: boolean): void {
    for (const [section, { starts, pages }] of column.sections) {
      if (water && !starts[starts.length - 1]) continue // it is the last part
      const cells = this.culling ? this.visibility.seen(column.x, section, column.z) : ALL_CELLS
      if (cells === 0) continue
      this.choose(cells, column.x * SIZE - x, section * SIZE - y, column.z * SIZE - z)
      let first = pages.first * PAGE_QUADS
      PARTS.forEach((part, i) => {
        const groups = startsOf(starts, i)
        const quads = groups[GROUPS] ?? 0
        if (quads > 0 && water === (part === 'water'))
          addRanges(this.batches[PASS_OF[part]], first, groups, this.directions[part])
        first += quads
      })
    }
  }

  /** Sets the directions of the faces that are drawn of a section, given its cells that can be seen, and its low corner relative to the camera. */
  private choose(cells: number, x: number, y: number, z: number): void {
    const { opaque, cutout, thicket, water } = this.directions
    for (let cell = 0; cell < CELLS; cell++) {
      const lowX = x + (cell & 1) * CELL
      const lowY = y + (cell >> 2) * CELL
      const lowZ = z + ((cell >> 1) & 1) * CELL
      const near = Math.hypot(Math.max(0, lowX, -CELL - lowX), Math.max(0, lowZ, -CELL - lowZ)) <= NEAR
      const all = (cells >> cell) & 1 ? ALL_FACES : 0
      const towards = all && facesTowards(lowX, lowY, lowZ)
      opaque[cell] = towards
      cutout[cell] = near ? all : towards
      thicket[cell] = near ? all : 0
      water[cell] = all
    }
  }
}
