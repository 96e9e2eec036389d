// All players' figures, drawn with one call: boxes with a joint and a paint at each vertex, and an instance for each player.
// A figure is 1.8 blocks high and faces +Z at yaw 0.

import {
  BoxGeometry,
  BufferAttribute,
  DynamicDrawUsage,
  GLSL3,
  InstancedBufferAttribute,
  InstancedBufferGeometry,
  Mesh,
  RawShaderMaterial,
} from 'three'
import { PIXEL, type Figure } from './figure'
import { FOG_GLSL, SKY_GLSL, air } from './glsl'

const VERTEX = /* glsl */ `
precision highp float;
precision highp int;
uniform mat4 viewMatrix, projectionMatrix;
uniform vec3 cameraPosition;
in vec3 position, normal, joint;
in vec3 paint;        // part, colour, brightness
in vec4 place;        // of the figure, relative to the render origin, and its yaw
in vec4 limbs;        // angles: head, legs, right arm, both arms outwards
in vec3 state;        // roofed, warmth, hurt
in vec4 shirt, trousers, skin, hair, accent;
out vec3 relative, facing, colour, condition;

vec3 turnX(vec3 v, float a) { return vec3(v.x, v.y * cos(a) - v.z * sin(a), v.y * sin(a) + v.z * cos(a)); }
vec3 turnZ(vec3 v, float a) { return vec3(v.x * cos(a) - v.y * sin(a), v.x * sin(a) + v.y * cos(a), v.z); }

vec3 bend(vec3 v) {
  int part = int(paint.x);
  if (part == 1) return turnX(v, limbs.x);
  if (part == 2) return turnX(v, limbs.y);
  if (part == 3) return turnX(v, -limbs.y);
  if (part == 4) return turnX(turnZ(v, limbs.w), -limbs.y);
  if (part == 5) return turnX(turnZ(v, -limbs.w), limbs.z);
  return v;
}

vec3 turn(vec3 v) {
  float c = cos(place.w), s = sin(place.w);
  return vec3(v.x * c - v.z * s, v.y, v.x * s + v.z * c);
}

void main() {
  vec3 at = place.xyz + turn(joint + bend(position));
  relative = at - cameraPosition;
  facing = turn(bend(normal));
  int which = int(paint.y);
  vec3 base = which == 0 ? shirt.rgb : which == 1 ? trousers.rgb : which == 2 ? skin.rgb : which == 3 ? hair.rgb
            : which == 4 ? vec3(245.0) / 255.0 : which == 5 ? vec3(48.0, 60.0, 98.0) / 255.0
            : (int(accent.a * 255.0 + 0.5) >> (which - 6) & 1) == 1 ? accent.rgb : which == 9 ? hair.rgb : shirt.rgb;
  colour = min(base * paint.z, 1.0);
  condition = state;
  gl_Position = projectionMatrix * (viewMatrix * vec4(at, 1.0));
}
`

const FRAGMENT = /* glsl */ `
precision highp float;
in vec3 relative, facing, colour, condition;
out vec4 colour_;
uniform vec3 skyLight, ambient;
uniform float daylight, lamp;
${SKY_GLSL}
${FOG_GLSL}
void main() {
  float roofed = condition.x, warmth = condition.y, hurt = condition.z;
  vec3 n = normalize(facing);
  float side = 0.78 + 0.22 * n.y + 0.1 * abs(n.z) + 0.1 * max(dot(n, sunward), 0.0);
  vec3 light = mix(skyLight, skyLight * 0.3, roofed) * side + ambient;
  float near = max(0.0, 1.0 - length(relative) / 15.0);
  light += vec3(1.1, 0.84, 0.56) * max(warmth, lamp * near * near) * side * (1.0 - 0.75 * daylight * (1.0 - roofed));
  colour_ = vec4(fogged(mix(min(colour * light, 1.0), vec3(0.86, 0.1, 0.08), 0.6 * hurt), relative), 1.0);
}
`

type Vector = readonly [x: number, y: number, z: number]
const PAINTS = ['shirt', 'trousers', 'skin', 'hair', 'white', 'eye', 'stripe', 'braces', 'cuffs', 'cap'] as const

interface Box {
  size: Vector // in pixels
  at: Vector // the centre, relative to the joint
  paint: (typeof PAINTS)[number]
  brightness?: number
}

const LEG: Box[] = [
  { size: [3.9, 12, 3.9], at: [0, -6, 0], paint: 'trousers' },
  { size: [4.2, 2.2, 4.8], at: [0, -10.9, 0.4], paint: 'trousers', brightness: 0.55 },
]
const ARM: Box[] = [
  { size: [3.8, 12, 3.8], at: [0, -5, 0], paint: 'skin' },
  { size: [4.1, 5, 4.1], at: [0, -1.4, 0], paint: 'shirt', brightness: 0.92 },
  { size: [4.3, 1.6, 4.3], at: [0, -3, 0], paint: 'cuffs', brightness: 0.92 },
]
/** The body, and the parts that bend: head, left leg, right leg, left arm, right arm. */
const PARTS: { joint: Vector; boxes: Box[] }[] = [
  {
    joint: [0, 24, 0],
    boxes: [
      { size: [8, 12, 4], at: [0, -6, 0], paint: 'shirt' },
      { size: [8.2, 1.2, 4.2], at: [0, -11.4, 0], paint: 'trousers', brightness: 0.7 },
      { size: [8.2, 2.2, 4.2], at: [0, -5.4, 0], paint: 'stripe' },
      { size: [1.3, 10.6, 4.3], at: [-2.4, -5.3, 0], paint: 'braces' },
      { size: [1.3, 10.6, 4.3], at: [2.4, -5.3, 0], paint: 'braces' },
      { size: [3, 1.4, 0.2], at: [0, -1, 2], paint: 'shirt', brightness: 0.75 },
    ],
  },
  {
    joint: [0, 24, 0],
    boxes: [
      { size: [8, 8, 8], at: [0, 4, 0], paint: 'skin' },
      { size: [8.4, 2.4, 8.4], at: [0, 7.2, 0], paint: 'cap' },
      { size: [8.4, 5, 3], at: [0, 5, -2.8], paint: 'hair' },
      { size: [2, 1.4, 0.2], at: [-2, 4, 4], paint: 'white' },
      { size: [2, 1.4, 0.2], at: [2, 4, 4], paint: 'white' },
      { size: [1, 1.4, 0.3], at: [-1.5, 4, 4], paint: 'eye' },
      { size: [1, 1.4, 0.3], at: [1.5, 4, 4], paint: 'eye' },
      { size: [2.4, 0.6, 0.2], at: [0, 1.6, 4], paint: 'skin', brightness: 0.7 },
    ],
  },
  { joint: [2, 12, 0], boxes: LEG },
  { joint: [-2, 12, 0], boxes: LEG },
  { joint: [6, 23, 0], boxes: ARM },
  { joint: [-6, 23, 0], boxes: ARM },
]

function inBlocks([x, y, z]: Vector): Vector {
  return [x * PIXEL, y * PIXEL, z * PIXEL]
}

/** Adds the vertices of a figure to a geometry. */
function addBoxes(geometry: InstancedBufferGeometry): void {
  const positions: number[] = []
  const normals: number[] = []
  const joints: number[] = []
  const paints: number[] = []
  PARTS.forEach(({ joint, boxes }, part) => {
    for (const { size, at, paint, brightness } of boxes) {
      const box = new BoxGeometry(...inBlocks(size)).toNonIndexed()
      box.translate(...inBlocks(at))
      const { array, count } = box.getAttribute('position')
      positions.push(...array)
      normals.push(...box.getAttribute('normal').array)
      for (let i = 0; i < count; i++) {
        joints.push(...inBlocks(joint))
        paints.push(part, PAINTS.indexOf(paint), brightness ?? 1)
      }
      box.dispose()
    }
  })
  geometry.setAttribute('position', new BufferAttribute(new Float32Array(positions), 3))
  geometry.setAttribute('normal', new BufferAttribute(new Float32Array(normals), 3))
  geometry.setAttribute('joint', new BufferAttribute(new Float32Array(joints), 3))
  geometry.setAttribute('paint', new BufferAttribute(new Float32Array(paints), 3))
}

const MOTION = { place: 4, limbs: 4, state: 3 } as const // written each frame
const COLOURS = ['shirt', 'trousers', 'skin', 'hair', 'accent'] as const

export class FigureMesh {
  readonly mesh: Mesh<InstancedBufferGeometry, RawShaderMaterial>
  private capacity = 0
  private figures: Figure[] = [] // whose colours are in the attributes

  constructor() {
    const material = new RawShaderMaterial({
      glslVersion: GLSL3,
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      uniforms: air,
    })
    this.mesh = new Mesh(new InstancedBufferGeometry(), material)
    this.mesh.frustumCulled = false
    this.mesh.renderOrder = 1
    this.mesh.visible = false
  }

  /** Shows these figures. */
  show(figures: Figure[]): void {
    const { mesh } = this
    mesh.visible = figures.length > 0
    if (!mesh.visible) return
    if (figures.length > this.capacity) this.grow(figures.length)
    const { geometry } = mesh
    figures.forEach((figure, i) => {
      for (const name of ['place', 'limbs', 'state'] as const) this.attribute(name).set(figure[name], i * MOTION[name])
      if (this.figures[i] === figure) return
      this.figures[i] = figure
      for (const name of COLOURS) {
        this.attribute(name).set(figure.appearance[name], i * 4)
        geometry.getAttribute(name).needsUpdate = true
      }
    })
    for (const name of ['place', 'limbs', 'state']) geometry.getAttribute(name).needsUpdate = true
    geometry.instanceCount = figures.length
  }

  private attribute(name: string): Float32Array {
    return this.mesh.geometry.getAttribute(name).array as Float32Array
  }

  private grow(count: number): void {
    this.capacity = 2 ** Math.ceil(Math.log2(Math.max(8, count)))
    this.figures = []
    this.mesh.geometry.dispose()
    const geometry = (this.mesh.geometry = new InstancedBufferGeometry())
    addBoxes(geometry)
    for (const [name, size] of Object.entries(MOTION)) {
      const attribute = new InstancedBufferAttribute(new Float32Array(this.capacity * size), size)
      geometry.setAttribute(name, attribute.setUsage(DynamicDrawUsage))
    }
    for (const name of COLOURS) {
      const bytes = new Uint8ClampedArray(this.capacity * 4)
      geometry.setAttribute(name, new InstancedBufferAttribute(bytes, 4, true))
    }
  }
}
