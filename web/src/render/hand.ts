// The selected block in the player's hand, in the lower right corner. It is drawn over the world, bobs with the player's
// steps, and swings with each click.

import { Group, PerspectiveCamera, Scene, type WebGLRenderer } from 'three'
import { OPEN } from '../mesh/land'
import { meshSection } from '../mesh/mesher'
import { LAYER, WIDTH, markRows, newVolume } from '../mesh/volume'
import { AIR, kindOf } from '../world/blocks'
import { air } from './glsl'
import { Batch, QuadBuffer } from './terrain-buffer'
import type { Terrain } from './terrain'

const SWING = 0.24 // seconds
const HELD = 0.32 // the size of the block
const MIDDLE = -1.5 * HELD // the block's centre is at 1.5 in the section

export class Hand {
  /** Holds the block. In third person it is in the world, where the figure has its hand. */
  readonly root = new Group()
  carried = false
  private readonly scene = new Scene()
  private readonly camera = new PerspectiveCamera(55, 1, 0.01, 10)
  private mesh: Batch | null = null
  private buffer: QuadBuffer | null = null
  private block = AIR
  /** Seconds since the last swing began, at most SWING. */
  swung = SWING
  private bob = 0
  private gait = 0
  private raised = 0

  constructor(private readonly terrain: Terrain) {
    this.root.matrixAutoUpdate = false
    this.scene.add(this.root)
  }

  /** Moves the block into the player's view again. */
  takeBack(): void {
    this.carried = false
    this.root.matrix.identity()
    this.root.visible = true
    this.scene.add(this.root)
  }

  hold(block: number): void {
    if (block === this.block) return
    this.block = block
    air.lamp.value = kindOf(block).glow / 15
    this.raised = 0
    if (this.mesh) this.root.remove(this.mesh)
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
    this.root.add(this.mesh)
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
    this.mesh.scale.setScalar(HELD)
    if (this.carried) {
      this.mesh.position.setScalar(MIDDLE)
      this.mesh.rotation.set(0, 0, 0)
      return
    }
    const swing = Math.sin((this.swung / SWING) * Math.PI)
    const x = 0.86 + Math.cos(this.bob / 2) * 0.02 * this.gait - 0.16 * swing
    const y = -0.6 - Math.abs(Math.sin(this.bob / 2)) * 0.03 * this.gait - 0.5 * (1 - this.raised) + 0.1 * swing
    this.mesh.position.set(x, y, -1.25 - 0.25 * swing)
    this.mesh.rotation.set(0.12 - 0.5 * swing, 0.72 - 0.3 * swing, 0)
    this.mesh.updateMatrix()
    this.mesh.translateX(MIDDLE).translateY(MIDDLE).translateZ(MIDDLE)
  }

  draw(renderer: WebGLRenderer, aspect: number): void {
    if (!this.mesh || this.carried) return
    this.camera.aspect = aspect
    this.camera.updateProjectionMatrix()
    renderer.clearDepth()
    renderer.render(this.scene, this.camera)
  }
}
