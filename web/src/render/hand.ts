// The selected block in the player's hand, in the lower right corner. It is drawn over the world, bobs with the player's
// steps, and swings with each click.

import { PerspectiveCamera, Scene, type WebGLRenderer } from 'three'
import { OPEN } from '../mesh/land'
import { meshSection } from '../mesh/mesher'
import { LAYER, WIDTH, markRows, newVolume } from '../mesh/volume'
import { AIR, kindOf } from '../world/blocks'
import { air } from './glsl'
import { Batch, QuadBuffer } from './terrain-buffer'
import type { Terrain } from './terrain'

const SWING = 0.24 // seconds
const HELD = 0.32 // the size of the block

export class Hand {
  private readonly scene = new Scene()
  private readonly camera = new PerspectiveCamera(55, 1, 0.01, 10)
  private mesh: Batch | null = null
  private buffer: QuadBuffer | null = null
  private block = AIR
  private swung = SWING
  private bob = 0
  private gait = 0
  private raised = 0

  constructor(private readonly terrain: Terrain) {}

  hold(block: number): void {
    if (block === this.block) return
    this.block = block
    air.lamp.value = kindOf(block).glow / 15
    this.raised = 0
    if (this.mesh) this.scene.remove(this.mesh)
    this.buffer?.dispose()
    this.mesh = this.buffer = null
    if (block === AIR) return
    const volume = newVolume()
    volume.blocks[2 * (LAYER + WIDTH + 1)] = block // at (1, 1, 1)
    volume.shade.fill(OPEN)
    markRows(volume)
    const faces = meshSection(volume)
    const pass = faces.opaque.length ? 'opaque' : faces.cutout.length ? 'cutout' : 'water'
    this.buffer = this.terrain.newBuffer()
    this.buffer.put(0, [faces[pass]])
    this.mesh = new Batch(this.buffer, this.terrain.materials[pass], 0)
    this.mesh.matrixAutoUpdate = true
    this.mesh.addRange(0, this.buffer.used)
    this.scene.add(this.mesh)
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
    if (!this.mesh) return
    const swing = Math.sin((this.swung / SWING) * Math.PI)
    const x = 0.86 + Math.cos(this.bob / 2) * 0.02 * this.gait - 0.16 * swing
    const y = -0.6 - Math.abs(Math.sin(this.bob / 2)) * 0.03 * this.gait - 0.5 * (1 - this.raised) + 0.1 * swing
    this.mesh.position.set(x, y, -1.25 - 0.25 * swing)
    this.mesh.rotation.set(0.12 - 0.5 * swing, 0.72 - 0.3 * swing, 0)
    this.mesh.scale.setScalar(HELD)
    // the block's centre is at 1.5 in the section
    this.mesh.updateMatrix()
    this.mesh
      .translateX(-1.5 * HELD)
      .translateY(-1.5 * HELD)
      .translateZ(-1.5 * HELD)
  }

  draw(renderer: WebGLRenderer, aspect: number): void {
    if (!this.mesh) return
    this.camera.aspect = aspect
    this.camera.updateProjectionMatrix()
    renderer.clearDepth()
    renderer.render(this.scene, this.camera)
  }
}
