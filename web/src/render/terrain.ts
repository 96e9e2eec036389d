// The meshes of the land, up to four per section. They are drawn relative to the render origin, so that nothing jitters far
// from the centre of the world. Owned by the main thread.

import { BufferAttribute, BufferGeometry, Group, Mesh, Sphere, Vector3, type RawShaderMaterial } from 'three'
import { WORDS_PER_QUAD, WORDS_PER_VERTEX, type SectionMesh } from '../mesh/mesher'
import type { MeshSink } from '../mesh/scheduler'
import { SIZE, chunkKey } from '../world/coords'
import { ALL_FACES, facesTowards, startsOf, quadRangesOf } from './facing'
import { makeTerrainMaterials } from './terrain-material'

/** The render origin moves in steps of this many blocks. */
export const ORIGIN_STEP = 4096

type Pass = keyof SectionMesh
const PASSES: Pass[] = ['opaque', 'cutout', 'thicket', 'water']
const ORDER: Record<Pass, number> = { opaque: 0, cutout: 1, thicket: 1, water: 3 }
/** In blocks: within this distance, the faces between leaves and the back faces of cutout blocks are drawn. */
const NEAR = 56
const BOUNDS = new Sphere(new Vector3(SIZE / 2, SIZE / 2, SIZE / 2), (SIZE / 2) * Math.sqrt(3) + 0.5)

const NO_WORDS = new Uint32Array(0)

/** The mesh of one pass of a section. */
interface Part {
  mesh: Mesh
  pass: Pass
  starts: number[] // see startsOf
  directions: number // drawn now, as bits
}

class Column {
  readonly parts = new Map<number, Part[]>() // by section
  constructor(
    readonly x: number,
    readonly z: number,
  ) {}
}

export class Terrain implements MeshSink {
  readonly group = new Group()
  readonly materials = makeTerrainMaterials()
  private columns = new Map<number, Column>()
  private index = quadIndex(1 << 12)
  private originX = 0
  private originZ = 0
  quads = 0

  constructor() {
    this.group.matrixAutoUpdate = false
  }

  show(x: number, z: number, section: number, mesh: SectionMesh): void {
    const key = chunkKey(x, z)
    let column = this.columns.get(key)
    if (!column) this.columns.set(key, (column = new Column(x, z)))
    this.drop(column, section)
    const parts: Part[] = []
    for (const pass of PASSES) if (mesh[pass].length > 0) parts.push(this.add(column, section, mesh[pass], pass))
    if (parts.length > 0) column.parts.set(section, parts)
  }

  remove(x: number, z: number): void {
    const column = this.columns.get(chunkKey(x, z))
    if (!column) return
    for (const section of [...column.parts.keys()]) this.drop(column, section)
    this.columns.delete(chunkKey(x, z))
  }

  /** Removes all meshes, when the GPU has lost them. */
  clear(): void {
    for (const { x, z } of [...this.columns.values()]) this.remove(x, z)
  }

  /** Moves the render origin; the camera's position is relative to it. */
  setOrigin(x: number, z: number): void {
    if (x === this.originX && z === this.originZ) return
    this.originX = x
    this.originZ = z
    for (const column of this.columns.values()) {
      for (const [section, parts] of column.parts) for (const { mesh } of parts) this.place(mesh, column, section)
    }
  }

  /** Skips the faces that cannot be seen from (x, y, z), in world blocks; called once per frame. */
  cull(x: number, y: number, z: number): void {
    for (const column of this.columns.values()) {
      const lowX = column.x * SIZE - x
      const lowZ = column.z * SIZE - z
      const away = Math.max(lowX, -SIZE - lowX, lowZ, -SIZE - lowZ)
      for (const [section, parts] of column.parts) {
        const directions = facesTowards(lowX, section * SIZE - y, lowZ)
        for (const part of parts)
          draw(part, part.pass === 'opaque' || (part.pass === 'cutout' && away > NEAR) ? directions : ALL_FACES)
        const thicket = parts.find(({ pass }) => pass === 'thicket')
        if (thicket) thicket.mesh.visible = away <= NEAR
      }
    }
  }

  /** Creates a geometry of packed quads; all geometries share one index. */
  geometry(words: Uint32Array): BufferGeometry {
    const quads = words.length / WORDS_PER_QUAD
    if (this.index.count < quads * 6) this.index = quadIndex(2 ** Math.ceil(Math.log2(quads)))
    const geometry = new BufferGeometry()
    geometry.setAttribute('words', new BufferAttribute(words, WORDS_PER_VERTEX))
    geometry.setIndex(this.index)
    geometry.setDrawRange(0, quads * 6)
    geometry.boundingSphere = BOUNDS
    return geometry
  }

  private add(column: Column, section: number, words: Uint32Array, pass: Pass): Part {
    const material: RawShaderMaterial = this.materials[pass === 'thicket' ? 'cutout' : pass]
    const geometry = this.geometry(words)
    const attribute = geometry.getAttribute('words') as BufferAttribute
    attribute.onUpload(() => (attribute.array = NO_WORDS)) // the GPU has them: free the memory
    const mesh = new Mesh(geometry, [material]) // an array, so that three draws the groups of the geometry
    mesh.matrixAutoUpdate = false
    mesh.renderOrder = ORDER[pass]
    this.place(mesh, column, section)
    this.group.add(mesh)
    this.quads += words.length / WORDS_PER_QUAD
    return { mesh, pass, starts: startsOf(words), directions: 0 }
  }

  private place(mesh: Mesh, column: Column, section: number): void {
    mesh.position.set(column.x * SIZE - this.originX, section * SIZE, column.z * SIZE - this.originZ)
    mesh.updateMatrix()
    mesh.matrixWorldNeedsUpdate = true
  }

  private drop(column: Column, section: number): void {
    for (const { mesh } of column.parts.get(section) ?? []) {
      this.group.remove(mesh)
      this.quads -= mesh.geometry.drawRange.count / 6
      disposeGeometry(mesh.geometry)
    }
    column.parts.delete(section)
  }
}

function draw(part: Part, directions: number): void {
  if (part.directions === directions) return
  part.directions = directions
  const { geometry } = part.mesh
  geometry.clearGroups()
  for (const { from, to } of quadRangesOf(part.starts, directions)) geometry.addGroup(from * 6, (to - from) * 6, 0)
}

/** Frees a geometry but not the shared index. */
export function disposeGeometry(geometry: BufferGeometry): void {
  geometry.setIndex(null)
  geometry.dispose()
}

function quadIndex(quads: number): BufferAttribute {
  const index = new Uint32Array(quads * 6)
  for (let q = 0, i = 0, v = 0; q < quads; q++, v += 4) {
    index[i++] = v
    index[i++] = v + 1
    index[i++] = v + 2
    index[i++] = v
    index[i++] = v + 2
    index[i++] = v + 3
  }
  return new BufferAttribute(index, 1)
}
