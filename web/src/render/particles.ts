// Particles of blocks that change: small squares in the block's colours that fall for less than a second. Loaded after joining.

import { BufferAttribute, BufferGeometry, GLSL3, Points, RawShaderMaterial, Vector3 } from 'three'
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
const UPWARDS = new Vector3(0, 2.2, 0)

const VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelMatrix, modelViewMatrix, projectionMatrix;
uniform vec3 cameraPosition;
uniform float scale;
in vec3 position, tint;
in float size;
out vec3 relative, colour;
void main() {
  vec4 view = modelViewMatrix * vec4(position, 1.0);
  relative = (modelMatrix * vec4(position, 1.0)).xyz - cameraPosition;
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
  position: Vector3
  velocity: Vector3 // blocks/s
  size: number // blocks
  age: number // seconds
}

/** Returns the number of particles of a block that breaks at a distance. */
export function particlesAt(distance: number): number {
  return Math.ceil(MAX_PER_BLOCK * Math.max(0, 1 - distance / REACH))
}

export class Particles {
  readonly points: Points
  private readonly particles: Particle[] = []
  private readonly positions = new BufferAttribute(new Float32Array(MAX_PARTICLES * 3), 3)
  private readonly tints = new BufferAttribute(new Float32Array(MAX_PARTICLES * 3), 3)
  private readonly sizes = new BufferAttribute(new Float32Array(MAX_PARTICLES), 1)
  private readonly scale = { value: 600 }
  private next = 0

  constructor() {
    for (let i = 0; i < MAX_PARTICLES; i++) {
      this.particles.push({ position: new Vector3(), velocity: new Vector3(), size: 0, age: LIFE })
    }
    const geometry = new BufferGeometry()
    geometry.setAttribute('position', this.positions)
    geometry.setAttribute('tint', this.tints)
    geometry.setAttribute('size', this.sizes)
    const material = new RawShaderMaterial({
      glslVersion: GLSL3,
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      uniforms: { ...air, scale: this.scale },
    })
    this.points = new Points(geometry, material)
    this.points.frustumCulled = false
    this.points.renderOrder = 1
    this.points.visible = false
  }

  /** Emits particles of a block at (x, y, z), relative to the render origin. */
  burst(x: number, y: number, z: number, block: number, count: number): void {
    const pixels = drawTile(kindOf(block).side)
    for (let i = 0; i < count; i++) {
      const at = this.next
      this.next = (this.next + 1) % MAX_PARTICLES
      const place = new Vector3().random()
      let pixel = 4 * Math.floor(Math.random() * TILE * TILE)
      while (pixels[pixel + 3] === 0) pixel = (pixel + 4 * 37) % pixels.length // the next opaque one
      this.particles[at] = {
        velocity: new Vector3(-0.5, -0.5, -0.5).add(place).multiplyScalar(3.4).add(UPWARDS),
        position: place.add({ x, y, z }),
        size: 0.06 + 0.08 * Math.random(),
        age: 0,
      }
      const [r = 0, g = 0, b = 0] = pixels.subarray(pixel, pixel + 3)
      this.tints.setXYZ(at, r / 255, g / 255, b / 255)
    }
    this.tints.needsUpdate = true
  }

  /** Advances by dt seconds; pixelsHigh is the height in pixels of a block at a distance of one block. */
  update(dt: number, pixelsHigh: number): void {
    this.scale.value = pixelsHigh
    let alive = 0
    for (const [i, particle] of this.particles.entries()) {
      if (particle.age >= LIFE) {
        this.sizes.setX(i, 0)
        continue
      }
      alive++
      particle.age += dt
      particle.velocity.y -= GRAVITY * dt
      particle.position.addScaledVector(particle.velocity, dt)
      if (particle.age > LIFE * 0.6) particle.size *= 1 - 4 * dt
      this.positions.setXYZ(i, particle.position.x, particle.position.y, particle.position.z)
      this.sizes.setX(i, particle.size)
    }
    this.points.visible = alive > 0
    if (alive === 0) return
    this.positions.needsUpdate = true
    this.sizes.needsUpdate = true
  }
}
