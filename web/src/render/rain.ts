// Rain and snow around the camera, with one draw call: thin rectangles that fall through a box, and begin again on top. A texture has the height
// of the land in each column around the camera, below which nothing falls. Loaded after joining.

import { Attribute, Geometry } from '../gl/geometry'
import { Mesh } from '../gl/mesh'
import { Program } from '../gl/program'
import { Texture } from '../gl/texture'
import { AIR, WATER, kindOf } from '../world/blocks'
import { chunkOf, within } from '../world/coords'
import type { World } from '../world/world'
import { air } from './glsl'

const DROPS = 3000
/** The box around the camera, in blocks. Columns are numbered by their position modulo its width. */
const WIDTH = 32
const HEIGHT = 24

// air.time starts again after 3600 s: in that time, drops fall through the box a whole number of times
const VERTEX = /* glsl */ `
precision highp float;
precision highp int;
precision highp sampler2D;
uniform mat4 viewMatrix, projectionMatrix;
uniform vec3 camera;       // in the world; x and z modulo the width
uniform vec3 cameraPosition;
uniform float time;
uniform sampler2D columns; // height of the land, and 1 where snow falls
in vec2 position;
in vec3 seed;
out float fade;
void main() {
  vec2 column = texelFetch(columns, ivec2(seed.xz), 0).xy;
  bool snow = column.y > 0.5;
  float phase = fract(seed.x * 7.31 + seed.z * 3.17);
  vec3 d = seed - camera;
  d.y = seed.y - camera.y - time * (snow ? 2.0 : 20.0);
  if (snow) d.xz += 0.3 * sin(vec2(1.3, 1.7) * time + 6.28 * phase);
  d = mod(d + 0.5 * vec3(${WIDTH}.0, ${HEIGHT}.0, ${WIDTH}.0), vec3(${WIDTH}.0, ${HEIGHT}.0, ${WIDTH}.0)) - 0.5 * vec3(${WIDTH}.0, ${HEIGHT}.0, ${WIDTH}.0);
  float far = length(d.xz);
  fade = (snow ? 0.9 : 0.4) * (1.0 - smoothstep(10.0, 15.0, far)) * smoothstep(0.6, 1.6, far);
  if (camera.y + d.y < column.x) fade = 0.0;
  vec2 size = snow ? vec2(0.06) : vec2(0.018, 0.7);
  vec3 right = vec3(-d.z, 0.0, d.x) / max(far, 1e-3);
  vec3 at = d + right * position.x * size.x + vec3(0.0, position.y * size.y, 0.0);
  gl_Position = fade > 0.0 ? projectionMatrix * viewMatrix * vec4(cameraPosition + at, 1.0) : vec4(0.0, 0.0, 2.0, 1.0);
}
`

const FRAGMENT = /* glsl */ `
precision highp float;
in float fade;
out vec4 colour_;
uniform vec3 skyLight;
void main() { colour_ = vec4(vec3(0.78, 0.86, 0.95) * (0.25 + 0.75 * skyLight), fade); }
`

/** Returns the height below which nothing falls in a column, and whether snow falls there. It looks down to the height lowest. */
export function columnAt(world: World, x: number, z: number, lowest: number): { height: number; snow: boolean } {
  const chunk = world.chunk(chunkOf(x), chunkOf(z))
  if (!chunk) return { height: world.height, snow: false }
  for (let y = world.height - 1; y >= lowest && y >= 0; y--) {
    if (chunk.sections[y >> 5] === AIR) {
      y &= ~31 // to the lower end of an empty section
      continue
    }
    const block = chunk.get(within(x), y, within(z))
    if (block === AIR) continue
    const kind = kindOf(block)
    if (kind.solid || kind.opaque || block === WATER) return { height: y + 1, snow: kind.cold }
  }
  return { height: lowest, snow: false }
}

const PROGRAM = new Program(VERTEX, FRAGMENT)

export class Rain {
  readonly mesh: Mesh
  private readonly heights = new Float32Array(WIDTH * WIDTH * 2)
  private readonly columns = new Texture([{ data: this.heights, width: WIDTH, height: WIDTH }], {
    format: 'rg32f',
    enlarge: 'nearest',
  })
  private readonly camera = { value: [0, 0, 0] }
  private row = 0

  constructor(private readonly world: World) {
    const seeds = Float32Array.from({ length: DROPS * 3 }, (_, i) => Math.random() * (i % 3 === 1 ? HEIGHT : WIDTH))
    const attributes = {
      position: new Attribute(new Float32Array([-1, 0, 1, 0, -1, 1, -1, 1, 1, 0, 1, 1]), 2),
      seed: new Attribute(seeds, 3, { instanced: true }),
    }
    const uniforms = { ...air, columns: { value: this.columns }, camera: this.camera }
    const material = { program: PROGRAM, uniforms, transparent: true, depthWrite: false }
    this.mesh = new Mesh(new Geometry({ attributes }), material, 2.6)
    this.mesh.visible = false
  }

  /** The number of drops and flakes that are drawn. */
  get drops(): number {
    return this.mesh.visible ? (this.mesh.geometry.instances ?? 0) : 0
  }

  /** Falls so hard, 0 to 1, around a position in the world. It looks at all columns when it begins, and then at one row of them each time. */
  update(strength: number, { x, y, z }: { x: number; y: number; z: number }): void {
    const rows = this.mesh.visible ? 1 : WIDTH
    this.mesh.visible = strength > 0
    if (strength === 0) return
    this.mesh.geometry.instances = Math.ceil(DROPS * strength)
    this.camera.value = [modulo(x), y, modulo(z)]
    for (let i = 0; i < rows; i++) {
      this.row = (this.row + 1) % WIDTH
      const blockZ = nearest(z, this.row)
      for (let column = 0; column < WIDTH; column++) {
        const { height, snow } = columnAt(this.world, nearest(x, column), blockZ, Math.floor(y - HEIGHT / 2))
        this.heights.set([height, snow ? 1 : 0], 2 * (this.row * WIDTH + column))
      }
    }
    this.columns.change()
  }
}

function modulo(x: number): number {
  return ((x % WIDTH) + WIDTH) % WIDTH
}

/** Returns the block coordinate nearest to x that is column modulo the width. */
function nearest(x: number, column: number): number {
  return column + WIDTH * Math.round((x - column) / WIDTH)
}
