// The messages to and from a meshing worker. They are processed in the order in which they were sent.

import type { Section } from '../world/codec'
import type { SectionMesh } from './mesher'

/** Adds or replaces a chunk. The worker meshes the chunk only if it owns it; otherwise it is the neighbour of one. */
export interface PutChunk {
  type: 'put'
  x: number
  z: number
  /** Identifies the chunk's data. */
  version: number
  own: boolean
  sections: Section[]
}

export interface RemoveChunk {
  type: 'remove'
  x: number
  z: number
}

/** Changes blocks, four numbers each: x, y, z, block. The worker meshes what looks different and was meshed before. */
export interface EditBlocks {
  type: 'edit'
  job: number
  edits: number[]
}

/** Meshes sections of a chunk; bit s stands for section s. */
export interface MeshChunk {
  type: 'mesh'
  job: number
  x: number
  z: number
  sections: number
  /** Whether it is meshed for being seen nearby; so it remains for edits. */
  near: boolean
}

export type ToWorker = PutChunk | RemoveChunk | EditBlocks | MeshChunk

export interface MeshedSection {
  x: number
  z: number
  /** The version of the chunk that was meshed. */
  version: number
  section: number
  mesh: SectionMesh
}

/** The answer to a job. */
export interface Meshed {
  job: number
  sections: MeshedSection[]
  /** The duration of the job, in ms. */
  duration: number
}

export function buffersOf({ sections }: Meshed): ArrayBuffer[] {
  return sections.flatMap(({ mesh }) =>
    [mesh.opaque, mesh.cutout, mesh.water, mesh.thicket]
      .filter(({ length }) => length > 0)
      .map(({ buffer }) => buffer as ArrayBuffer),
  )
}
