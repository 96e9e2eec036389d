// All players' figures, drawn with one call: boxes with a joint and a paint at each vertex, and an instance for each player.
// A figure is 1.8 blocks high and faces +Z at yaw 0.

import { Attribute, Geometry } from '../gl/geometry'
import { Mesh } from '../gl/mesh'
import { Program } from '../gl/program'
import { boxTriangles } from '../gl/shapes'
import { HIPS, LEAN, LOWER, PATTERNS, PIXEL, type Figure } from './figure'
import { PAINTS, PARTS, type Vector } from './figure-parts'
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
in vec4 state;        // roofed, warmth, hurt, crouch
in vec4 shirt, trousers, skin, hair, accent;
out vec3 relative, facing, colour, condition, second;
out vec2 cloth;       // pixels
flat out uint pattern;
const uint patterns[] = uint[](${PATTERNS.map((rows) => `${rows}u`).join()});

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

// Lowers the hips of who crouches: the legs are shorter, and the rest leans forward.
vec3 crouched(vec3 v) {
  float low = 1.0 - ${LOWER} * state.w, part = paint.x;
  vec3 hips = vec3(0, ${HIPS}, 0);
  return part == 2.0 || part == 3.0 ? v * vec3(1, low, 1) : turnX(v - hips, ${LEAN} * state.w) + hips * low;
}

vec3 turn(vec3 v) {
  float c = cos(place.w), s = sin(place.w);
  return vec3(v.x * c - v.z * s, v.y, v.x * s + v.z * c);
}

void main() {
  vec3 at = place.xyz + turn(crouched(joint + bend(position)));
  relative = at - cameraPosition;
  facing = turn(bend(normal));
  int which = int(paint.y), chosen = int(accent.a * 255.0 + 0.5);
  vec3 base = which == 0 ? shirt.rgb : which == 1 ? trousers.rgb : which == 2 ? skin.rgb : which == 3 ? hair.rgb
            : which == 4 ? vec3(245.0) / 255.0 : which == 5 ? vec3(48.0, 60.0, 98.0) / 255.0
            : (chosen >> (which - 6) & 1) == 1 ? accent.rgb : which == 9 ? hair.rgb : shirt.rgb;
  colour = min(base * paint.z, 1.0);
  pattern = which == 0 || which > 5 && which < 9 ? patterns[chosen >> 4] : 0u;
  second = accent.rgb * paint.z;
  bool flank = abs(normal.x) > 0.5;
  float side = joint.x != 0.0 ? sign(joint.x) : flank ? sign(position.x) : 0.0; // so that each half is on one side
  cloth = vec2((flank ? position.z : position.x) / ${PIXEL} + 4.0 + 2.0 * side, (abs(normal.y) > 0.5 ? position.z : position.y) / ${PIXEL});
  condition = state.xyz;
  gl_Position = projectionMatrix * (viewMatrix * vec4(at, 1.0));
}
`

const FRAGMENT = /* glsl */ `
precision highp float;
precision highp int;
in vec3 relative, facing, colour, condition, second;
in vec2 cloth;
flat in uint pattern;
out vec4 colour_;
uniform vec3 skyLight, ambient;
uniform float daylight, lamp;
${SKY_GLSL}
${FOG_GLSL}
void main() {
  ivec2 pixel = ivec2(floor(vec2(clamp(cloth.x, 0.0, 7.9), cloth.y)));
  bool other = (pattern >> uint((pixel.y & 3) * 8 + pixel.x) & 1u) == 1u;
  float roofed = condition.x, warmth = condition.y, hurt = condition.z;
  vec3 n = normalize(facing);
  float side = 0.78 + 0.22 * n.y + 0.1 * abs(n.z) + 0.1 * max(dot(n, sunward), 0.0);
  vec3 light = mix(skyLight, skyLight * 0.3, roofed) * side + ambient;
  float near = max(0.0, 1.0 - length(relative) / 15.0);
  light += vec3(1.1, 0.84, 0.56) * max(warmth, lamp * near * near) * side * (1.0 - 0.75 * daylight * (1.0 - roofed));
  colour_ = vec4(fogged(mix(min((other ? second : colour) * light, 1.0), vec3(0.86, 0.1, 0.08), 0.6 * hurt), relative), 1.0);
}
`

function inBlocks([x, y, z]: Vector): Vector {
  return [x * PIXEL, y * PIXEL, z * PIXEL]
}

/** Returns the vertices of a figure. */
function boxAttributes(): Record<string, Attribute> {
  const all: Record<'position' | 'normal' | 'joint' | 'paint', number[]> = {
    position: [],
    normal: [],
    joint: [],
    paint: [],
  }
  PARTS.forEach(({ joint, boxes }, part) => {
    for (const { size, at, paint, brightness } of boxes) {
      const { positions, normals } = boxTriangles(inBlocks(size), inBlocks(at))
      all.position.push(...positions)
      all.normal.push(...normals)
      for (let i = 0; i < positions.length; i += 3) {
        all.joint.push(...inBlocks(joint))
        all.paint.push(part, PAINTS.indexOf(paint), brightness ?? 1)
      }
    }
  })
  return Object.fromEntries(
    Object.entries(all).map(([name, values]) => [name, new Attribute(new Float32Array(values), 3)]),
  )
}

const PROGRAM = new Program(VERTEX, FRAGMENT)
const MOTION = { place: 4, limbs: 4, state: 4 } as const // written each frame
const COLOURS = ['shirt', 'trousers', 'skin', 'hair', 'accent'] as const

export class FigureMesh {
  readonly mesh = new Mesh(new Geometry({}), { program: PROGRAM, uniforms: air }, 1)
  private capacity = 0
  private figures: Figure[] = [] // whose colours are in the attributes

  constructor() {
    this.mesh.visible = false
  }

  /** Shows these figures. */
  show(figures: Figure[]): void {
    const { mesh } = this
    mesh.visible = figures.length > 0
    if (!mesh.visible) return
    if (figures.length > this.capacity) this.grow(figures.length)
    const { attributes } = mesh.geometry
    figures.forEach((figure, i) => {
      for (const name of ['place', 'limbs', 'state'] as const)
        attributes[name]?.values.set(figure[name], i * MOTION[name])
      if (this.figures[i] === figure) return
      this.figures[i] = figure
      for (const name of COLOURS) {
        attributes[name]?.values.set(figure.appearance[name], i * 4)
        attributes[name]?.change()
      }
    })
    for (const name of ['place', 'limbs', 'state']) attributes[name]?.change(figures.length)
    mesh.geometry.instances = figures.length
  }

  private grow(count: number): void {
    this.capacity = 2 ** Math.ceil(Math.log2(Math.max(8, count)))
    this.figures = []
    const attributes = boxAttributes()
    for (const [name, size] of Object.entries(MOTION)) {
      attributes[name] = new Attribute(new Float32Array(this.capacity * size), size, { instanced: true })
    }
    for (const name of COLOURS) {
      const bytes = new Uint8ClampedArray(this.capacity * 4)
      attributes[name] = new Attribute(bytes, 4, { normalized: true, instanced: true })
    }
    this.mesh.geometry.dispose()
    this.mesh.geometry = new Geometry({ attributes })
  }
}
