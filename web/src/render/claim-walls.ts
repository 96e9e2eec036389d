// Shows the borders of claims as translucent walls with bright edges, which fade in near the camera. All of them are one draw call.

import { Attribute, Geometry, Index } from '../gl/geometry'
import { translation } from '../gl/matrix'
import { Mesh, type Material } from '../gl/mesh'
import { Program } from '../gl/program'
import type { Box } from '../world/claims'
import { air } from './glsl'

/** In blocks: how far from the camera walls are shown, and how far if the player wants to see all. */
const NEAR = 14
const FAR = 160
/** In blocks: walls are that far outside, so that faces of blocks do not flicker in them. */
const OUTSIDE = 0.02
const WALLS = 4
const CORNERS = [0, 1, 2, 2, 1, 3] // of the two triangles of a wall

const VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelMatrix, viewMatrix, projectionMatrix;
uniform vec3 cameraPosition;
in vec3 position, tint;
in vec4 place;
in float always;
out vec3 relative, colour;
out vec4 at;
out float shown;
void main() {
  vec4 world = modelMatrix * vec4(position, 1.0);
  relative = world.xyz - cameraPosition;
  colour = tint;
  at = place;
  shown = always;
  gl_Position = projectionMatrix * viewMatrix * world;
}
`

// at: the distance from the wall's left and lower sides, and its width and height, in blocks
const FRAGMENT = /* glsl */ `
precision highp float;
in vec3 relative, colour;
in vec4 at;
in float shown;
out vec4 colour_;
uniform vec2 fog;
uniform float reach, daylight;
float line(float distance_, float width) {
  float soft = fwidth(distance_) + 0.001;
  return 1.0 - smoothstep(width, width + soft, distance_);
}
void main() {
  float distance_ = length(relative);
  float limit = mix(reach, ${FAR.toFixed(1)}, shown);
  float near = 1.0 - smoothstep(limit * 0.35, limit, distance_);
  near *= 1.0 - smoothstep(fog.x, fog.y, length(relative.xz));
  float edge = max(line(min(at.x, at.z - at.x), 0.03), line(min(at.y, at.w - at.y), 0.03));
  float rows = abs(fract(at.y) - 0.5), columns = abs(fract(at.x) - 0.5);
  float grid = max(line(0.5 - rows, 0.012), line(0.5 - columns, 0.012)) * smoothstep(0.3, 2.0, distance_) * (1.0 - smoothstep(6.0, 22.0, distance_));
  float level = exp(-abs(relative.y + 1.2) * 0.32); // 1 at the feet
  float alpha = max(edge * 0.85, max(grid * 0.4 * level, 0.15 * level));
  colour_ = vec4(colour * (0.55 + 0.45 * daylight), alpha * near);
}
`

/** A box to show. */
export interface ShownBox extends Box {
  colour: readonly [r: number, g: number, b: number]
  /** Show it also from afar. */
  always?: boolean
}

const PROGRAM = new Program(VERTEX, FRAGMENT)
/** The number of numbers of each attribute. */
const ATTRIBUTES = { position: 3, tint: 3, place: 4, always: 1 } as const

export class ClaimWalls {
  readonly mesh: Mesh
  private readonly reach = { value: NEAR }

  constructor() {
    const material: Material = {
      program: PROGRAM,
      uniforms: { fog: air.fog, daylight: air.daylight, reach: this.reach },
      transparent: true,
      depthWrite: false,
      side: 'both',
    }
    this.mesh = new Mesh(new Geometry({}), material, 2.8)
    this.mesh.visible = false
  }

  /** Sets whether all walls are shown from afar. */
  setFar(far: boolean): void {
    this.reach.value = far ? FAR : NEAR
  }

  /** Sets the boxes; height is that of the world. */
  show(boxes: readonly ShownBox[], height: number): void {
    this.mesh.visible = boxes.length > 0
    const [first] = boxes
    if (!first) return
    const [baseX, , baseZ] = first.min // positions are relative to it: large ones are not exact
    this.mesh.matrix = translation(baseX, 0, baseZ)
    const walls = boxes.flatMap((box) => wallsOf(box, baseX, baseZ, height))
    const attributes = Object.fromEntries(
      (['position', 'tint', 'place', 'always'] as const).map((name) => {
        const values = new Float32Array(walls.flatMap((wall) => wall[name]))
        return [name, new Attribute(values, ATTRIBUTES[name])] as const
      }),
    )
    const index = new Index(new Uint32Array(walls.flatMap((_, i) => CORNERS.map((corner) => WALLS * i + corner))))
    this.mesh.geometry.index?.dispose()
    this.mesh.geometry.dispose()
    this.mesh.geometry = new Geometry({ attributes, index })
  }
}

interface Wall {
  position: number[]
  tint: number[]
  place: number[]
  always: number[]
}

function wallsOf({ min, max, colour, always }: ShownBox, baseX: number, baseZ: number, height: number): Wall[] {
  const x0 = min[0] - baseX - OUTSIDE
  const z0 = min[2] - baseZ - OUTSIDE
  const x1 = max[0] + 1 - baseX + OUTSIDE
  const z1 = max[2] + 1 - baseZ + OUTSIDE
  const y0 = min[1]
  const y1 = Math.min(max[1] + 1, height)
  const sides: [fromX: number, fromZ: number, toX: number, toZ: number][] = [
    [x0, z0, x1, z0],
    [x1, z0, x1, z1],
    [x1, z1, x0, z1],
    [x0, z1, x0, z0],
  ]
  return sides.map(([ax, az, bx, bz]) => {
    const width = Math.abs(bx - ax) + Math.abs(bz - az)
    const corners: [x: number, y: number, z: number, u: number][] = [
      [ax, y0, az, 0],
      [bx, y0, bz, width],
      [ax, y1, az, 0],
      [bx, y1, bz, width],
    ]
    return {
      position: corners.flatMap(([x, y, z]) => [x, y, z]),
      tint: corners.flatMap(() => [...colour]),
      place: corners.flatMap(([, y, , u]) => [u, y - y0, width, y1 - y0]),
      always: corners.map(() => (always ? 1 : 0)),
    }
  })
}
