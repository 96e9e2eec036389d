// The messages to and from a meshing worker. The arrays are transferred, not copied.

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
  /** The duration of the job, in ms. */
  duration: number
}

export function runJob(job: MeshJob): MeshResult {
  const start = performance.now()
  const light = lightVolume(job.volume)
  const meshes = job.sections.map((s) => meshSection(job.volume, light, s))
  return { id: job.id, meshes, duration: performance.now() - start }
}

export function buffersOf(result: MeshResult): ArrayBuffer[] {
  return result.meshes.flatMap((mesh) => [
    mesh.opaque.buffer as ArrayBuffer,
    mesh.cutout.buffer as ArrayBuffer,
    mesh.water.buffer as ArrayBuffer,
    mesh.thicket.buffer as ArrayBuffer,
  ])
}
