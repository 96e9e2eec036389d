// Particles of broken blocks: small squares in the block's colours that fall for less than a second.

import { BufferAttribute, BufferGeometry, GLSL3, Points, RawShaderMaterial } from 'three'
import { kindOf } from '../world/blocks'
import { FOG_GLSL, SKY_GLSL, air } from './glsl'
import { TILE } from './pixels'
import { drawTile } from './tiles'

const MAX_PARTICLES = 512
const PER_BLOCK = 22
const LIFE = 0.7 // seconds
const GRAVITY = 16

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

export class Particles {
  readonly points: Points
  private readonly position = new Float32Array(MAX_PARTICLES * 3)
  private readonly velocity = new Float32Array(MAX_PARTICLES * 3)
  private readonly tint = new Float32Array(MAX_PARTICLES * 3)
  private readonly size = new Float32Array(MAX_PARTICLES)
  private readonly age = new Float32Array(MAX_PARTICLES).fill(LIFE)
  private readonly geometry = new BufferGeometry()
  private readonly scale = { value: 600 }
  private next = 0

  constructor() {
    this.geometry.setAttribute('position', new BufferAttribute(this.position, 3))
    this.geometry.setAttribute('tint', new BufferAttribute(this.tint, 3))
    this.geometry.setAttribute('size', new BufferAttribute(this.size, 1))
    const material = new RawShaderMaterial({
      glslVersion: GLSL3,
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      uniforms: { ...air, scale: this.scale },
    })
    this.points = new Points(this.geometry, material)
    this.points.frustumCulled = false
    this.points.renderOrder = 1
    this.points.visible = false
  }

  /** Emits the particles of a block at (x, y, z), relative to the render origin. */
  burst(x: number, y: number, z: number, block: number): void {
    const pixels = drawTile(kindOf(block).side)
    for (let i = 0; i < PER_BLOCK; i++) {
      const at = this.next
      this.next = (this.next + 1) % MAX_PARTICLES
      const place = [Math.random(), Math.random(), Math.random()]
      const from = [x, y, z]
      let pixel = 4 * Math.floor(Math.random() * TILE * TILE)
      while (pixels[pixel + 3] === 0) pixel = (pixel + 4 * 37) % pixels.length // the next opaque one
      for (let axis = 0; axis < 3; axis++) {
        this.position[3 * at + axis] = from[axis] + place[axis]
        this.velocity[3 * at + axis] = (place[axis] - 0.5) * 3.4 + (axis === 1 ? 2.2 : 0)
        this.tint[3 * at + axis] = pixels[pixel + axis] / 255
      }
      this.size[at] = 0.06 + 0.08 * Math.random()
      this.age[at] = 0
    }
    this.geometry.getAttribute('tint').needsUpdate = true
  }

  /** Advances by dt seconds; pixelsHigh is the height in pixels of a block at a distance of one block. */
  update(dt: number, pixelsHigh: number): void {
    this.scale.value = pixelsHigh
    let alive = 0
    for (let i = 0; i < MAX_PARTICLES; i++) {
      if (this.age[i] >= LIFE) {
        this.size[i] = 0
        continue
      }
      alive++
      this.age[i] += dt
      this.velocity[3 * i + 1] -= GRAVITY * dt
      for (let axis = 0; axis < 3; axis++) this.position[3 * i + axis] += this.velocity[3 * i + axis] * dt
      if (this.age[i] > LIFE * 0.6) this.size[i] *= 1 - 4 * dt
    }
    this.points.visible = alive > 0
    if (alive === 0) return
    this.geometry.getAttribute('position').needsUpdate = true
    this.geometry.getAttribute('size').needsUpdate = true
  }
}
