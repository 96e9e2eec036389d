// What a meshing worker does: it keeps the land and its light up to date, and meshes sections. After an edit it meshes only
// the sections whose faces or light differ.

import { Land, type LandChunk } from './land'
import { darkenAround, lightChunk, setBlock, type Changes } from './light'
import { NOTHING, meshSection, type SectionMesh } from './mesher'
import type { MeshChunk, Meshed, MeshedSection, PutChunk, RemoveChunk, ToWorker } from './messages'
import { NONE, SHAPE } from './tables'
import { copyVolume, newVolume } from './volume'

export class LandMesher {
  readonly land = new Land()
  private readonly volume = newVolume()
  private lighting = 0 // ms, spent on the light of new chunks since the last job

  /** Processes a message. Returns the answer to a job, otherwise null. */
  process(message: ToWorker): Meshed | null {
    const start = performance.now()
    switch (message.type) {
      case 'put':
        this.put(message)
        break
      case 'remove':
        this.remove(message)
        break
      case 'edit':
        return this.answer(message.job, this.edit(message.edits), start)
      case 'mesh':
        return this.answer(message.job, this.mesh(message), start)
    }
    this.lighting += performance.now() - start
    return null
  }

  private answer(job: number, sections: MeshedSection[], start: number): Meshed {
    const duration = performance.now() - start + this.lighting
    this.lighting = 0
    return { job, sections, duration }
  }

  private put({ x, z, version, own, sections }: PutChunk): void {
    this.remove({ x, z })
    lightChunk(this.land.add(x, z, version, own, sections))
  }

  private remove({ x, z }: Pick<RemoveChunk, 'x' | 'z'>): void {
    const chunk = this.land.chunk(x, z)
    if (!chunk) return
    this.land.delete(chunk)
    darkenAround(chunk)
  }

  private mesh({ x, z, sections, near }: MeshChunk): MeshedSection[] {
    const chunk = this.land.chunk(x, z)
    if (!chunk) return []
    chunk.near = near
    return this.meshSections(chunk, sections)
  }

  private meshSections(chunk: LandChunk, sections: number): MeshedSection[] {
    chunk.meshed |= sections
    const { x, z, version } = chunk
    const meshed: MeshedSection[] = []
    for (let s = 0; s < chunk.blocks.length; s++) {
      if (sections & (1 << s)) meshed.push({ x, z, version, section: s, mesh: this.meshOf(chunk, s) })
    }
    return meshed
  }

  private meshOf(chunk: LandChunk, s: number): SectionMesh {
    if (chunk.blocks[s] === 0) return NOTHING
    copyVolume(this.land, chunk, s, this.volume)
    return meshSection(this.volume, s, chunk.near)
  }

  private edit(edits: number[]): MeshedSection[] {
    const changes: Changes = new Map()
    const differing = new Map<LandChunk, number>() // sections, as bits
    for (let i = 0; i < edits.length; i += 4) {
      const [x = 0, y = 0, z = 0, block = 0] = edits.slice(i, i + 4)
      const at = this.land.locate(x, y, z)
      if (!at || at.chunk.block(at.index) === block) continue
      setBlock(at.chunk, at.index, block, changes)
      differing.set(at.chunk, (differing.get(at.chunk) ?? 0) | (1 << (at.index >> 15)))
      this.markAround(at.chunk, at.index, differing)
    }
    for (const { chunk, index, before } of changes.values()) {
      if (chunk.lightAt(index) !== before) this.markAround(chunk, index, differing)
    }
    const meshed: MeshedSection[] = []
    for (const [chunk, sections] of differing) {
      if (chunk.own) meshed.push(...this.meshSections(chunk, sections & chunk.meshed))
    }
    return meshed
  }

  /** Marks the sections with a face that a block may shade or hide: those of the drawn blocks around it. */
  private markAround(chunk: LandChunk, index: number, differing: Map<LandChunk, number>): void {
    const x = index & 31
    const z = (index >> 5) & 31
    const y = index >> 10
    const inner = x > 0 && x < 31 && z > 0 && z < 31 && (y & 31) > 0 && (y & 31) < 31
    if (inner && (differing.get(chunk) ?? 0) & (1 << (y >> 5))) return
    for (let dz = -1; dz <= 1; dz++) {
      for (let dx = -1; dx <= 1; dx++) {
        const near = this.beside(chunk, x + dx, z + dz)
        if (!near) continue
        const column = (((z + dz) & 31) << 5) | ((x + dx) & 31)
        for (let up = Math.max(0, y - 1); up <= y + 1 && up < near.height; up++) {
          if (SHAPE[near.block((up << 10) | column)] === NONE) continue
          differing.set(near, (differing.get(near) ?? 0) | (1 << (up >> 5)))
        }
      }
    }
  }

  /** Returns the chunk of a column whose coordinates are relative to a chunk, from −1 to 32. */
  private beside(chunk: LandChunk, x: number, z: number): LandChunk | undefined {
    const dx = x >> 5
    const dz = z >> 5
    return dx === 0 && dz === 0 ? chunk : this.land.chunk(chunk.x + dx, chunk.z + dz)
  }
}
