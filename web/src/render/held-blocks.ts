// The blocks that others hold, in their figures' hands.

import { multiply, translation } from '../gl/matrix'
import { Mesh } from '../gl/mesh'
import { AIR, KINDS } from '../world/blocks'
import type { Figure } from './figure'
import { inHand, makeHeld, type HeldBlock } from './hand'
import { QuadBuffer } from './terrain-buffer'
import { makeTerrainMaterials, type TerrainMaterials, type TerrainUniforms } from './terrain-material'
import { handOf } from './third-person'

/** Each is a draw call of its own. */
const MOST = 24
const REACH = 32 // blocks from the camera

/** One who holds a block. */
interface Holder {
  held: number
  figure: Figure
  tag: { distance: number } // from the camera
}

export class HeldBlocks {
  /** Of the nearest. */
  readonly meshes: Mesh[] = []
  private readonly buffer: QuadBuffer
  private readonly materials: TerrainMaterials
  private readonly made = new Map<number, HeldBlock | null>()

  constructor(gl: WebGL2RenderingContext, tiles: TerrainUniforms['tiles']) {
    this.buffer = new QuadBuffer(gl, 1)
    this.materials = makeTerrainMaterials({ tiles, chunks: this.buffer.texture, origin: { value: [0, 0] } })
    gl.canvas.addEventListener('webglcontextrestored', () => this.clear())
  }

  /** Shows what the nearest of these hold. Their figures have their poses for this frame, relative to the render origin. */
  show(holders: Holder[], originX: number, originZ: number): void {
    this.meshes.length = 0
    const near = holders.filter(({ held, tag }) => held !== AIR && held < KINDS.length && tag.distance < REACH)
    near.sort((a, b) => a.tag.distance - b.tag.distance)
    for (const { held, figure } of near.slice(0, MOST)) {
      const block = this.blockOf(held)
      if (!block) continue
      const { batch, from, to } = block
      batch.addRange(from, to)
      batch.finish()
      const mesh = new Mesh(batch.mesh.geometry, batch.mesh.material, batch.mesh.order)
      mesh.matrix = inHand(multiply(translation(originX, 0, originZ), handOf(figure)))
      this.meshes.push(mesh)
    }
  }

  private blockOf(held: number): HeldBlock | null {
    const known = this.made.get(held)
    if (known !== undefined) return known
    const block = makeHeld(held, this.buffer, this.materials)
    this.made.set(held, block)
    return block
  }

  /** Forgets what the GPU has lost. */
  private clear(): void {
    for (const block of this.made.values()) block?.batch.dispose()
    this.made.clear()
    this.meshes.length = 0
    this.buffer.clear()
  }
}
