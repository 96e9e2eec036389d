// The selected block in the player's hand, in the lower right corner. It is drawn over the world, bobs with the player's
// steps, and swings with each click.

import { PerspectiveCamera } from '../gl/camera'
import { product, rotationX, rotationY, scaling, translation, type Matrix } from '../gl/matrix'
import type { Mesh } from '../gl/mesh'
import type { Renderer } from '../gl/renderer'
import { OPEN } from '../mesh/land'
import { WORDS_PER_QUAD, meshSection } from '../mesh/mesher'
import { LAYER, WIDTH, markRows, newVolume } from '../mesh/volume'
import { AIR, kindOf } from '../world/blocks'
import { air } from './glsl'
import { Batch, PAGE_QUADS, QuadBuffer } from './terrain-buffer'
import { makeTerrainMaterials, type TerrainMaterials, type TerrainUniforms } from './terrain-material'

const SWING = 0.24 // seconds
const HELD = 0.32 // the size of the block
const MIDDLE = -1.5 * HELD // the block's centre is at 1.5 in the section

/** The quads of a block that is held, in a buffer. */
export interface HeldBlock {
  batch: Batch
  from: number
  to: number
}

/** Writes the quads of a block into a buffer. Null if there are none, or the GPU has no memory left. */
export function makeHeld(block: number, buffer: QuadBuffer, materials: TerrainMaterials): HeldBlock | null {
  const volume = newVolume()
  volume.blocks[2 * (LAYER + WIDTH + 1)] = block // at (1, 1, 1)
  volume.shade.fill(OPEN)
  markRows(volume)
  const faces = meshSection(volume)
  const pass = faces.opaque.length ? 'opaque' : faces.cutout.length ? 'cutout' : 'water'
  const pages = buffer.put(0, 0, [faces[pass]], null)
  if (!pages) return null
  const from = pages.first * PAGE_QUADS
  return { batch: new Batch(buffer, materials[pass], 0), from, to: from + faces[pass].length / WORDS_PER_QUAD }
}

/** Returns the place of a block that a figure holds, from that of its hand. */
export function inHand(hand: Matrix): Matrix {
  return product(hand, translation(MIDDLE, MIDDLE, MIDDLE), scaling(HELD))
}

export class Hand {
  /** The block, or nothing. */
  readonly meshes = new Set<Mesh>()
  /** In third person the block is in the world: where the figure has its hand, or 'hidden' if the figure is. Null in first person. */
  carried: Matrix | 'hidden' | null = null
  private readonly camera = new PerspectiveCamera(55, 0.01, 10)
  private readonly buffer: QuadBuffer
  private readonly materials: TerrainMaterials
  private batch: Batch | null = null
  private block = AIR
  /** Seconds since the last swing began, at most SWING. */
  swung = SWING
  private bob = 0
  private gait = 0
  private raised = 0

  constructor(gl: WebGL2RenderingContext, tiles: TerrainUniforms['tiles']) {
    this.buffer = new QuadBuffer(gl, 1)
    this.materials = makeTerrainMaterials({ tiles, chunks: this.buffer.texture, origin: { value: [0, 0] } })
    this.camera.place(0, 0, 0, 0, 0)
  }

  hold(block: number): void {
    if (block === this.block) return
    this.block = block
    air.lamp.value = kindOf(block).glow / 15
    this.raised = 0
    this.meshes.clear()
    this.buffer.clear()
    this.batch?.dispose()
    this.batch = null
    if (block === AIR) return
    const held = makeHeld(block, this.buffer, this.materials)
    if (!held) return
    this.batch = held.batch
    this.batch.addRange(held.from, held.to)
    this.batch.finish()
    this.meshes.add(this.batch.mesh)
  }

  /** Uploads the block again, when the GPU has lost it. */
  restore(): void {
    const { block } = this
    this.hold(AIR)
    this.hold(block)
  }

  swing(): void {
    this.swung = 0
  }

  update(dt: number, speed: number): void {
    this.swung = Math.min(SWING, this.swung + dt)
    this.raised += (1 - this.raised) * (1 - Math.exp(-14 * dt))
    this.gait += (Math.min(1, speed / 5) - this.gait) * (1 - Math.exp(-8 * dt))
    this.bob += dt * 9
    if (!this.batch) return
    const { carried } = this
    const { mesh } = this.batch
    mesh.visible = carried !== 'hidden'
    if (carried) {
      if (carried !== 'hidden') mesh.matrix = inHand(carried)
      return
    }
    const swing = Math.sin((this.swung / SWING) * Math.PI)
    const x = 0.86 + Math.cos(this.bob / 2) * 0.02 * this.gait - 0.16 * swing
    const y = -0.6 - Math.abs(Math.sin(this.bob / 2)) * 0.03 * this.gait - 0.5 * (1 - this.raised) + 0.1 * swing
    mesh.matrix = product(
      translation(x, y, -1.25 - 0.25 * swing),
      rotationX(0.12 - 0.5 * swing),
      rotationY(0.72 - 0.3 * swing),
      translation(MIDDLE, MIDDLE, MIDDLE),
      scaling(HELD),
    )
  }

  /** Draws the block over the world, in first person. */
  draw(renderer: Renderer, aspect: number): void {
    if (!this.batch || this.carried) return
    this.camera.aspect = aspect
    this.camera.update()
    renderer.clearDepth()
    renderer.draw([this.meshes], this.camera)
  }
}
