// Particles of blocks that change: small squares in the block's colours that fall for less than a second. Loaded after joining.

import { Attribute, Geometry } from '../gl/geometry'
import { Mesh } from '../gl/mesh'
import { Program } from '../gl/program'
import type { Vector } from '../gl/vector'
import { kindOf } from '../world/blocks'
import { FOG_GLSL, SKY_GLSL, air } from './glsl'
import { TILE } from './pixels'
import { drawTile } from './tiles'

const MAX_PARTICLES = 512
const MAX_PER_BLOCK = 22
/** In blocks: farther away there are none. */
const REACH = 40
const LIFE = 0.7 // seconds
const GRAVITY = 16
const SPREAD = 3.4 // blocks/s from side to side
const UPWARDS = 2.2 // blocks/s

const VERTEX = /* glsl */ `
precision highp float;
uniform mat4 viewMatrix, projectionMatrix;
uniform vec3 cameraPosition;
uniform float scale;
in vec3 position, tint;
in float size;
out vec3 relative, colour;
void main() {
  vec4 view = viewMatrix * vec4(position, 1.0);
  relative = position - cameraPosition;
  colour = tint;
  gl_Position = projectionMatrix * view;
  gl_PointSize = size * scale / max(0.1, -view.z);
}
`

const FRAGMENT = /* glsl */ `
precision highp float;
in vec3 relative, colour;
out vec4 colour_;
uniform vec3 skyLight;
${SKY_GLSL}
${FOG_GLSL}
void main() { colour_ = vec4(fogged(min(colour * (skyLight * 0.85 + 0.08), 1.0), relative), 1.0); }
`

interface Particle {
  position: Vector // relative to the render origin
  velocity: Vector // blocks/s
  size: number // blocks
  age: number // seconds
}

/** Returns the number of particles of a block that breaks at a distance. */
export function particlesAt(distance: number): number {
  return Math.ceil(MAX_PER_BLOCK * Math.max(0, 1 - distance / REACH))
}

const PROGRAM = new Program(VERTEX, FRAGMENT)

export class Particles {
  readonly mesh: Mesh
  private readonly particles: Particle[] = []
  private readonly positions = new Attribute(new Float32Array(MAX_PARTICLES * 3), 3)
  private readonly tints = new Attribute(new Float32Array(MAX_PARTICLES * 3), 3)
  private readonly sizes = new Attribute(new Float32Array(MAX_PARTICLES), 1)
  private readonly scale = { value: 600 }
  private next = 0

  constructor() {
    for (let i = 0; i < MAX_PARTICLES; i++) {
      this.particles.push({ position: [0, 0, 0], velocity: [0, 0, 0], size: 0, age: LIFE })
    }
    const attributes = { position: this.positions, tint: this.tints, size: this.sizes }
    const uniforms = { ...air, scale: this.scale }
    this.mesh = new Mesh(new Geometry({ attributes }), { program: PROGRAM, uniforms, primitive: 'points' }, 1)
    this.mesh.visible = false
  }

  /** Emits particles of a block at (x, y, z), relative to the render origin. */
  burst(x: number, y: number, z: number, block: number, count: number): void {
    const pixels = drawTile(kindOf(block).side)
    for (let i = 0; i < count; i++) {
      const at = this.next
      this.next = (this.next + 1) % MAX_PARTICLES
      const [dx, dy, dz] = [Math.random(), Math.random(), Math.random()]
      let pixel = 4 * Math.floor(Math.random() * TILE * TILE)
      while (pixels[pixel + 3] === 0) pixel = (pixel + 4 * 37) % pixels.length // the next opaque one
      this.particles[at] = {
        velocity: [(dx - 0.5) * SPREAD, (dy - 0.5) * SPREAD + UPWARDS, (dz - 0.5) * SPREAD],
        position: [x + dx, y + dy, z + dz],
        size: 0.06 + 0.08 * Math.random(),
        age: 0,
      }
      const [r = 0, g = 0, b = 0] = pixels.subarray(pixel, pixel + 3)
      this.tints.values.set([r / 255, g / 255, b / 255], 3 * at)
    }
    this.tints.change()
  }

  /** Advances by dt seconds; pixelsHigh is the height in pixels of a block at a distance of one block. */
  update(dt: number, pixelsHigh: number): void {
    this.scale.value = pixelsHigh
    let alive = 0
    for (const [i, particle] of this.particles.entries()) {
      if (particle.age >= LIFE) {
        this.sizes.values[i] = 0
        continue
      }
      alive++
      particle.age += dt
      const { position, velocity } = particle
      velocity[1] -= GRAVITY * dt
      position[0] += velocity[0] * dt
      position[1] += velocity[1] * dt
      position[2] += velocity[2] * dt
      if (particle.age > LIFE * 0.6) particle.size *= 1 - 4 * dt
      this.positions.values.set(position, 3 * i)
      this.sizes.values[i] = particle.size
    }
    this.mesh.visible = alive > 0
    if (alive === 0) return
    this.positions.change()
    this.sizes.change()
  }
}
