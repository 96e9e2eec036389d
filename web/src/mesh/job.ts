// What goes to a meshing worker and what comes back. Both ways the arrays are transferred, not copied.

import { lightVolume } from './light'
import { meshSection, type SectionMesh } from './mesher'
import type { Volume } from './volume'

export interface MeshJob {
  id: number
  volume: Volume
  sections: number[]
}

export interface MeshResult {
  id: number
  /** In the order of the job's sections. */
  meshes: SectionMesh[]
  /** Time it took, ms. */
  took: number
}

export function runJob(job: MeshJob): MeshResult {
  const start = performance.now()
  const light = lightVolume(job.volume)
  const meshes = job.sections.map((s) => meshSection(job.volume, light, s))
  return { id: job.id, meshes, took: performance.now() - start }
}

export function buffersOf(result: MeshResult): ArrayBuffer[] {
  return result.meshes.flatMap((mesh) => [
    mesh.opaque.buffer as ArrayBuffer,
    mesh.cutout.buffer as ArrayBuffer,
    mesh.water.buffer as ArrayBuffer,
    mesh.thicket.buffer as ArrayBuffer,
  ])
}
