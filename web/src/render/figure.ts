// A player's figure, made of boxes with swinging limbs. It is 1.8 blocks high and faces +Z at yaw 0.

import { BoxGeometry, BufferAttribute, BufferGeometry, GLSL3, Group, Mesh, RawShaderMaterial } from 'three'
import { FOG_GLSL, SKY_GLSL, air } from './glsl'
import { hash, pick } from '../world/hash'
import { bright, type Colour } from './pixels'

const VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelMatrix, modelViewMatrix, projectionMatrix;
uniform vec3 cameraPosition;
in vec3 position, normal, tint;
out vec3 relative, facing, colour;
void main() {
  relative = (modelMatrix * vec4(position, 1.0)).xyz - cameraPosition;
  facing = mat3(modelMatrix) * normal;
  colour = tint;
  gl_Position = projectionMatrix * (modelViewMatrix * vec4(position, 1.0));
}
`

const FRAGMENT = /* glsl */ `
precision highp float;
in vec3 relative, facing, colour;
out vec4 colour_;
uniform vec3 skyLight;
uniform float roofed, warmth, daylight, hurt;
${SKY_GLSL}
${FOG_GLSL}
void main() {
  vec3 n = normalize(facing);
  float side = 0.78 + 0.22 * n.y + 0.1 * abs(n.z) + 0.1 * max(dot(n, sunward), 0.0);
  vec3 light = mix(skyLight, skyLight * 0.3, roofed) * side + vec3(0.05);
  light += vec3(1.1, 0.84, 0.56) * warmth * side * (1.0 - 0.75 * daylight * (1.0 - roofed));
  colour_ = vec4(fogged(mix(min(colour * light, 1.0), vec3(0.86, 0.1, 0.08), 0.6 * hurt), relative), 1.0);
}
`

type Vector = readonly [x: number, y: number, z: number]

interface Box {
  size: Vector
  at: Vector // the centre, relative to the joint
  colour: Colour // 0 to 255
}

const PIXEL = 1.8 / 32 // a figure is 32 pixels high

function inBlocks([x, y, z]: Vector): Vector {
  return [x * PIXEL, y * PIXEL, z * PIXEL]
}

function solid(boxes: Box[]): BufferGeometry {
  const positions: number[] = []
  const normals: number[] = []
  const tints: number[] = []
  for (const box of boxes) {
    const part = new BoxGeometry(...inBlocks(box.size)).toNonIndexed()
    part.translate(...inBlocks(box.at))
    positions.push(...part.getAttribute('position').array)
    normals.push(...part.getAttribute('normal').array)
    for (let i = 0; i < part.getAttribute('position').count; i++) tints.push(...box.colour.map((c) => c / 255))
    part.dispose()
  }
  const geometry = new BufferGeometry()
  geometry.setAttribute('position', new BufferAttribute(new Float32Array(positions), 3))
  geometry.setAttribute('normal', new BufferAttribute(new Float32Array(normals), 3))
  geometry.setAttribute('tint', new BufferAttribute(new Float32Array(tints), 3))
  return geometry
}

/** Converts hue, saturation and lightness (each 0 to 1) to a colour. */
function hsl(h: number, s: number, l: number): Colour {
  const f = (n: number) => {
    const k = (n + h * 12) % 12
    return 255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1)))
  }
  return [f(0), f(8), f(4)]
}

const SKINS: readonly [Colour, ...Colour[]] = [
  [255, 219, 186],
  [236, 188, 146],
  [198, 140, 98],
  [141, 92, 60],
  [96, 62, 44],
]
const HAIRS: readonly [Colour, ...Colour[]] = [
  [40, 30, 26],
  [92, 58, 32],
  [168, 110, 52],
  [214, 178, 98],
  [120, 120, 126],
  [140, 52, 36],
]

/** Returns the appearance for a player id: the same on every client. */
export function appearanceOf(id: string): { shirt: Colour; trousers: Colour; skin: Colour; hair: Colour; css: string } {
  let seed = 7
  for (const letter of id) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) | 0
  const hue = hash(1, 0, seed)
  const shirt = hsl(hue, 0.62, 0.5)
  return {
    shirt,
    trousers: hsl((hue + 0.45 + 0.2 * hash(2, 0, seed)) % 1, 0.35, 0.3),
    skin: pick(SKINS, hash(3, 0, seed)),
    hair: pick(HAIRS, hash(4, 0, seed)),
    css: `hsl(${Math.round(hue * 360)} 62% 58%)`,
  }
}

export class Figure {
  readonly body = new Group()
  private readonly head: Mesh
  private readonly leftLeg: Mesh
  private readonly rightLeg: Mesh
  private readonly leftArm: Mesh
  private readonly rightArm: Mesh
  private readonly parts: Mesh[] = []
  private readonly uniforms = { ...air, roofed: { value: 0 }, warmth: { value: 0 }, hurt: { value: 0 } }
  private readonly material: RawShaderMaterial
  private swing = 0
  private gait = 0
  private hurt = 0 // 1 at a hit, then fading
  private armSwing = 0 // 1 at the start of a swing, then falling

  constructor(id: string) {
    const { shirt, trousers, skin, hair } = appearanceOf(id)
    this.material = new RawShaderMaterial({
      glslVersion: GLSL3,
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      uniforms: this.uniforms,
    })
    const eye: Colour = [48, 60, 98]
    this.head = this.part(
      [
        { size: [8, 8, 8], at: [0, 4, 0], colour: skin },
        { size: [8.4, 2.4, 8.4], at: [0, 7.2, 0], colour: hair },
        { size: [8.4, 5, 3], at: [0, 5, -2.8], colour: hair },
        { size: [2, 1.4, 0.2], at: [-2, 4, 4], colour: [245, 245, 245] },
        { size: [2, 1.4, 0.2], at: [2, 4, 4], colour: [245, 245, 245] },
        { size: [1, 1.4, 0.3], at: [-1.5, 4, 4], colour: eye },
        { size: [1, 1.4, 0.3], at: [1.5, 4, 4], colour: eye },
        { size: [2.4, 0.6, 0.2], at: [0, 1.6, 4], colour: bright(skin, 0.7) },
      ],
      0,
      24,
      0,
    )
    this.part(
      [
        { size: [8, 12, 4], at: [0, -6, 0], colour: shirt },
        { size: [8.2, 1.2, 4.2], at: [0, -11.4, 0], colour: bright(trousers, 0.7) },
        { size: [3, 1.4, 0.2], at: [0, -1, 2], colour: bright(shirt, 0.75) },
      ],
      0,
      24,
      0,
    )
    const leg = (): Box[] => [
      { size: [3.9, 12, 3.9], at: [0, -6, 0], colour: trousers },
      { size: [4.2, 2.2, 4.8], at: [0, -10.9, 0.4], colour: bright(trousers, 0.55) },
    ]
    const arm = (): Box[] => [
      { size: [3.8, 12, 3.8], at: [0, -5, 0], colour: skin },
      { size: [4.1, 5, 4.1], at: [0, -1.4, 0], colour: bright(shirt, 0.92) },
    ]
    this.leftLeg = this.part(leg(), 2, 12, 0)
    this.rightLeg = this.part(leg(), -2, 12, 0)
    this.leftArm = this.part(arm(), 6, 23, 0)
    this.rightArm = this.part(arm(), -6, 23, 0)
  }

  private part(boxes: Box[], x: number, y: number, z: number): Mesh {
    const mesh = new Mesh(solid(boxes), this.material)
    mesh.position.set(x * PIXEL, y * PIXEL, z * PIXEL)
    mesh.renderOrder = 1
    this.body.add(mesh)
    this.parts.push(mesh)
    return mesh
  }

  /** Poses the figure: angles, and limbs that swing at a speed in blocks/s; dt is the time since the last call in seconds. */
  pose(yaw: number, pitch: number, speed: number, dt: number): void {
    this.body.rotation.y = -yaw
    this.head.rotation.x = -pitch * 0.8
    this.gait += (Math.min(1, speed / 5) - this.gait) * (1 - Math.exp(-8 * dt))
    this.swing += dt * (3 + 1.5 * Math.min(speed, 7))
    const angle = Math.sin(this.swing) * 0.85 * this.gait
    const idle = Math.sin(this.swing * 0.35) * 0.03
    this.leftLeg.rotation.x = angle
    this.rightLeg.rotation.x = -angle
    this.leftArm.rotation.set(-angle, 0, 0.05 + idle)
    this.rightArm.rotation.set(angle - 1.6 * Math.sin(Math.PI * this.armSwing), 0, -0.05 - idle)
    this.armSwing = Math.max(0, this.armSwing - dt / 0.3)
    this.hurt = Math.max(0, this.hurt - dt / 0.45)
    this.uniforms.hurt.value = this.hurt
  }

  /** Flashes red: the player was hit. */
  flinch(): void {
    this.hurt = 1
  }

  /** Swings the right arm: the player hits or gives. */
  swingArm(): void {
    this.armSwing = 1
  }

  /** Sets the ambient light: whether there is a roof, and the light of nearby lamps, 0 to 1. */
  light(roofed: boolean, warmth: number): void {
    this.uniforms.roofed.value = roofed ? 1 : 0
    this.uniforms.warmth.value = warmth
  }

  dispose(): void {
    for (const part of this.parts) part.geometry.dispose()
    this.material.dispose()
  }
}
