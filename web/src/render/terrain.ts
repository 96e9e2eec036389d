// The meshes of the land. All sections of a chunk share a buffer on the GPU, and are drawn with one call per pass: WEBGL_multi_draw
// takes the ranges of quads that can be seen. Owned by the main thread.

import type { PerspectiveCamera } from '../gl/camera'
import { translation } from '../gl/matrix'
import type { Material, Mesh } from '../gl/mesh'
import { GROUPS, PARTS, WORDS_PER_QUAD, startsOf, type SectionMesh } from '../mesh/mesher'
import type { MeshSink } from '../mesh/scheduler'
import { SIZE, chunkKey } from '../world/coords'
import { ALL_FACES, addRanges, facesTowards } from './facing'
import { Batch, QuadBuffer, QuadIndex } from './terrain-buffer'
import { makeTerrainMaterials } from './terrain-material'
import { TerrainVisibility, type Openings } from './terrain-visibility'

/** In blocks: within this distance, the faces between leaves and the back faces of cutout blocks are drawn. */
const NEAR = 56
/** In chunks: land farther away is not drawn. */
const MAX_RADIUS = 24
const ALL_CELLS = 255

const PASSES = ['opaque', 'cutout', 'water'] as const
type Pass = (typeof PASSES)[number]
const ORDER: Record<Pass, number> = { opaque: 0, cutout: 1, water: 3 }
/** The pass of each part. */
const PASS_OF = { opaque: 0, cutout: 1, thicket: 1, water: 2 }

class Column implements Openings {
  readonly openings: (Uint8Array | undefined)[] = []
  readonly starts = new Map<number, Uint32Array>() // by section, see SectionMesh
  readonly batches: Batch[]

  constructor(
    readonly x: number,
    readonly z: number,
    readonly buffer: QuadBuffer,
    materials: Record<Pass, Material>,
  ) {
    this.batches = PASSES.map((pass) => new Batch(buffer, materials[pass], ORDER[pass]))
    for (const batch of this.batches) batch.matrix = translation(x * SIZE, 0, z * SIZE)
  }
}

export class Terrain implements MeshSink {
  readonly meshes = new Set<Mesh>()
  readonly materials = makeTerrainMaterials()
  private columns = new Map<number, Column>()
  private readonly index = new QuadIndex()
  private readonly visibility = new TerrainVisibility()
  private readonly drawn = new Float64Array(19) // the camera of the last drawing, as its matrix and position
  private changed = true
  private culling = true

  constructor(private readonly gl: WebGL2RenderingContext) {}

  get quads(): number {
    let quads = 0
    for (const { buffer } of this.columns.values()) quads += buffer.used
    return quads
  }

  /** The size of all vertex buffers. */
  get bytes(): number {
    let bytes = 0
    for (const { buffer } of this.columns.values()) bytes += buffer.capacity * WORDS_PER_QUAD * 4
    return bytes
  }

  /** The number of ranges that the draw calls of the last frame were made of. */
  get ranges(): number {
    let ranges = 0
    for (const { batches } of this.columns.values()) for (const batch of batches) ranges += batch.ranges.count
    return ranges
  }

  show(x: number, z: number, section: number, mesh: SectionMesh): void {
    const key = chunkKey(x, z)
    let column = this.columns.get(key)
    if (!column) {
      this.columns.set(key, (column = new Column(x, z, this.newBuffer(), this.materials)))
      for (const batch of column.batches) this.meshes.add(batch)
    }
    column.buffer.put(
      section,
      PARTS.map((part) => mesh[part]),
    )
    column.openings[section] = mesh.openings
    column.starts.set(section, mesh.starts)
    this.changed = true
  }

  remove(x: number, z: number): void {
    const column = this.columns.get(chunkKey(x, z))
    if (!column) return
    for (const batch of column.batches) this.meshes.delete(batch)
    column.buffer.dispose()
    this.columns.delete(chunkKey(x, z))
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

  /** Skips what cannot be seen by a camera, whose position in world blocks is (x, y, z); called once per frame. */
  cull(camera: PerspectiveCamera, x: number, y: number, z: number): void {
    const matrix = camera.projectionOfRelative
    const now = [...matrix, x, y, z]
    if (!this.changed && now.every((value, i) => value === this.drawn[i])) return
    this.drawn.set(now)
    this.changed = false
    let radius = 0
    let sections = 0
    const chunkX = Math.floor(x / SIZE)
    const chunkZ = Math.floor(z / SIZE)
    for (const column of this.columns.values()) {
      radius = Math.max(radius, Math.abs(column.x - chunkX), Math.abs(column.z - chunkZ))
      sections = Math.max(sections, column.openings.length)
    }
    radius = Math.min(radius, MAX_RADIUS)
    if (this.culling) {
      const at = (cx: number, cz: number) => this.columns.get(chunkKey(cx, cz))
      this.visibility.update([x, y, z], matrix, radius, sections, at)
    }
    for (const column of this.columns.values()) this.cullColumn(column, x, y, z)
  }

  /** Creates a buffer for quads that are drawn with the materials of the land. */
  newBuffer(): QuadBuffer {
    return new QuadBuffer(this.gl, this.index)
  }

  private cullColumn(column: Column, x: number, y: number, z: number): void {
    const { batches, buffer } = column
    for (const batch of batches) batch.clear()
    const lowX = column.x * SIZE - x
    const lowZ = column.z * SIZE - z
    const near = Math.max(lowX, -SIZE - lowX, lowZ, -SIZE - lowZ) <= NEAR
    for (const [section, starts] of column.starts) {
      const first = buffer.at(section)
      if (first < 0) continue
      const cells = this.culling ? this.visibility.seen(column.x, section, column.z) : ALL_CELLS
      if (cells === 0) continue
      const towards = facesTowards(lowX, section * SIZE - y, lowZ)
      let before = first
      PARTS.forEach((part, i) => {
        const batch = batches[PASS_OF[part]]
        const groups = startsOf(starts, i)
        const quads = groups[GROUPS] ?? 0
        if (quads === 0) return
        const faces = part === 'opaque' || (part === 'cutout' && !near) ? towards : ALL_FACES
        if (batch && (part !== 'thicket' || near)) addRanges(batch, before, groups, faces, cells)
        before += quads
      })
    }
    for (const batch of batches) batch.visible = batch.ranges.count > 0
  }
}
