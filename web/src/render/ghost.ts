// Shows blocks that are not there: translucent boxes in the shapes and colours of the blocks. All of them are one draw call.

import { Attribute, Geometry } from '../gl/geometry'
import { translation } from '../gl/matrix'
import { Mesh } from '../gl/mesh'
import { Program } from '../gl/program'
import { QUAD } from '../gl/shapes'
import { AIR, boxesOf, type Box } from '../world/blocks'
import { colourOf } from './block-colour'

/** In blocks: how far outside of a block its faces are, so that they do not flicker in those of real blocks. */
const OUTSIDE = 0.006
/** The colour of blocks that would be removed. */
const REMOVED = [255, 70, 60] as const
const CUBE: Box = [0, 0, 0, 1, 1, 1]

// A face is along the axis face / 2; its corners are in counter-clockwise order if seen from outside.
const VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelViewMatrix, projectionMatrix;
in vec3 position;
in vec4 place;      // of the block, and the face
in vec3 low, size;  // of the box in the block
in vec3 tint;
out vec2 at;
out vec3 colour;
void main() {
  float face = place.w;
  float high = mod(face, 2.0);
  vec2 uv = high > 0.5 ? position.xy : position.yx;
  float side = high > 0.5 ? 1.0 + ${OUTSIDE} : -${OUTSIDE};
  vec3 corner = face < 2.0 ? vec3(side, uv) : face < 4.0 ? vec3(uv.y, side, uv.x) : vec3(uv, side);
  float shade = face < 2.0 ? 0.8 : face < 4.0 ? 0.6 + 0.4 * high : 0.68;
  at = position.xy;
  colour = tint * shade;
  gl_Position = projectionMatrix * modelViewMatrix * vec4(place.xyz + low + corner * size, 1.0);
}
`

const FRAGMENT = /* glsl */ `
precision highp float;
in vec2 at;
in vec3 colour;
out vec4 colour_;
void main() {
  vec2 near = min(at, 1.0 - at);
  float distance_ = min(near.x, near.y);
  float soft = fwidth(distance_) + 0.001;
  float edge = 1.0 - smoothstep(0.025, 0.025 + soft, distance_);
  colour_ = vec4(mix(colour, vec3(1.0), 0.25 + 0.55 * edge), mix(0.5, 0.85, edge));
}
`

interface GhostBlock {
  readonly x: number
  readonly y: number
  readonly z: number
  readonly block: number
}

const PROGRAM = new Program(VERTEX, FRAGMENT)

export class Ghost {
  readonly mesh = new Mesh(
    new Geometry({}),
    { program: PROGRAM, uniforms: {}, transparent: true, depthWrite: false },
    2.6,
  )
  /** The number of blocks shown. */
  count = 0

  constructor() {
    this.mesh.visible = false
  }

  /** Shows blocks instead of those shown before. Faces between two whole ones are left out. */
  show(blocks: readonly GhostBlock[]): void {
    this.count = blocks.length
    this.mesh.visible = this.count > 0
    const [first] = blocks
    if (!first) return
    this.mesh.matrix = translation(first.x, 0, first.z) // positions are relative to it: large ones are not exact
    const whole = new Set(blocks.flatMap(({ x, y, z, block }) => (isWhole(block) ? [`${x},${y},${z}`] : [])))
    const places: number[] = []
    const lows: number[] = []
    const sizes: number[] = []
    const tints: number[] = []
    for (const { x, y, z, block } of blocks) {
      const tint = block === AIR ? REMOVED : colourOf(block)
      const faces = [
        [x - 1, y, z],
        [x + 1, y, z],
        [x, y - 1, z],
        [x, y + 1, z],
        [x, y, z - 1],
        [x, y, z + 1],
      ]
      for (const [x0, y0, z0, x1, y1, z1] of boxesShown(block)) {
        for (const [face, beside] of faces.entries()) {
          if (isWhole(block) && whole.has(beside.join())) continue
          places.push(x - first.x, y, z - first.z, face)
          lows.push(x0, y0, z0)
          sizes.push(x1 - x0, y1 - y0, z1 - z0)
          tints.push(...tint)
        }
      }
    }
    const instanced = (values: Float32Array | Uint8Array, size: number) =>
      new Attribute(values, size, { instanced: true, normalized: values instanceof Uint8Array })
    const attributes = {
      position: new Attribute(new Float32Array([0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0]), 3),
      place: instanced(new Float32Array(places), 4),
      low: instanced(new Float32Array(lows), 3),
      size: instanced(new Float32Array(sizes), 3),
      tint: instanced(new Uint8Array(tints), 3),
    }
    this.mesh.geometry.dispose()
    this.mesh.geometry = new Geometry({ attributes, index: QUAD })
    this.mesh.geometry.instances = places.length / 4
  }
}

/** Returns the boxes in which a block is shown: a cube for what is removed, and for what has no boxes. */
function boxesShown(block: number): readonly Box[] {
  const boxes = block === AIR ? [] : boxesOf(block)
  return boxes.length > 0 ? boxes : [CUBE]
}

function isWhole(block: number): boolean {
  const [box, second] = boxesShown(block)
  return !second && box?.join() === CUBE.join()
}
