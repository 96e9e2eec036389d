// What is drawn: a geometry with a material, at a place. And the order in which meshes are drawn.

import type { PerspectiveCamera, Sphere } from './camera'
import type { Side } from './device'
import type { Geometry } from './geometry'
import { identity, type Matrix } from './matrix'
import type { Program, Uniforms } from './program'

/** How a mesh is drawn. The renderer sets these uniforms, if the program reads them: modelMatrix, modelViewMatrix, viewMatrix,
 * projectionMatrix, cameraPosition. Their places are relative to the render origin. */
export interface Material {
  readonly program: Program
  readonly uniforms: Uniforms
  /** Drawn over what is behind, by its alpha, and so from back to front. */
  readonly transparent?: boolean
  /** False if it hides nothing that is drawn later. */
  readonly depthWrite?: boolean
  readonly side?: Side
  readonly primitive?: 'triangles' | 'lines' | 'points'
}

export class Mesh {
  visible = true
  /** It was in the last picture. */
  drawn = false
  /** From the mesh to world blocks. */
  matrix: Matrix = identity()
  /** What encloses it, in its own coordinates: it is drawn if this may be in the picture; null: always. */
  bounds: Sphere | null = null

  /** order: lower ones are drawn first. */
  constructor(
    public geometry: Geometry,
    readonly material: Material,
    readonly order: number,
  ) {}
}

/** Returns the meshes that may be in the picture, in the order in which they are drawn: those of the same order from front to back, so that hidden
 * pixels are not drawn; but transparent ones from back to front. */
export function drawOrder(sources: Iterable<Iterable<Mesh>>, camera: PerspectiveCamera): Mesh[] {
  const found: { mesh: Mesh; key: number }[] = []
  for (const source of sources) {
    for (const mesh of source) {
      mesh.drawn = false
      if (!mesh.visible) continue
      const { matrix, bounds, material } = mesh
      const x = (matrix[12] ?? 0) - camera.originX
      const y = matrix[13] ?? 0
      const z = (matrix[14] ?? 0) - camera.originZ
      if (bounds) {
        const [mx, my, mz] = bounds.middle
        if (!camera.sees(x + mx, y + my, z + mz, bounds.radius)) continue
      }
      mesh.drawn = true
      const depth = camera.depth(x, y, z)
      found.push({ mesh, key: material.transparent ? -depth : depth })
    }
  }
  return found.sort((a, b) => a.mesh.order - b.mesh.order || a.key - b.key).map(({ mesh }) => mesh)
}
