// The texts of the signs near the player, each on a quad in front of its board. A text is drawn on a canvas of its own when the player comes near, one
// in an update, so that no frame waits for many.

import { product, rotationY, translation, type Matrix } from '../gl/matrix'
import { Mesh } from '../gl/mesh'
import { Program } from '../gl/program'
import { upright } from '../gl/shapes'
import { Texture } from '../gl/texture'
import { context2D } from './canvas'

/** In blocks: beyond that no text can be read. */
export const REACH = 24
const MOST = 32
const WIDTH = 256 // pixels
const HEIGHT = 128
const LINE = 31
const MARGIN = 8
/** In blocks, how far the text is before the board: enough for the depth buffer at REACH. */
const BEFORE = 0.006
/** By the direction in which the reader looks: +x −x +z −z. */
const AHEAD = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
] as const
const TURN = [-Math.PI / 2, Math.PI / 2, Math.PI, 0]

const VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelViewMatrix, projectionMatrix;
in vec3 position;
in vec2 uv;
out vec2 at;
void main() {
  at = uv;
  gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
}
`

const FRAGMENT = /* glsl */ `
precision highp float;
uniform sampler2D text;
in vec2 at;
out vec4 colour_;
void main() {
  colour_ = texture(text, at);
}
`

export interface ShownSign {
  readonly x: number
  readonly y: number
  readonly z: number
  readonly text: string
  /** The number of the direction in which its reader looks: +x −x +z −z. */
  readonly direction: number
  readonly onWall: boolean
}

const PROGRAM = new Program(VERTEX, FRAGMENT)
const PLANE = upright(0.96, 0.48)
const BOUNDS = { middle: [0, 0, 0] as [number, number, number], radius: 0.6 }

export class SignTexts {
  readonly meshes = new Set<Mesh>()
  private readonly shown = new Map<string, { mesh: Mesh; texture: Texture }>()

  /** The number of texts that are drawn. */
  get count(): number {
    return this.shown.size
  }

  /** Shows the signs that are near a place. */
  show(signs: readonly ShownSign[], x: number, y: number, z: number): void {
    const distance = (sign: ShownSign) => Math.hypot(sign.x - x, sign.y - y, sign.z - z)
    const near = signs.filter((sign) => distance(sign) < REACH).sort((a, b) => distance(a) - distance(b))
    near.splice(MOST)
    const wanted = new Map(near.map((sign) => [keyOf(sign), sign]))
    for (const [key, { mesh, texture }] of this.shown) {
      if (wanted.has(key)) continue
      this.meshes.delete(mesh)
      texture.dispose()
      this.shown.delete(key)
    }
    const missing = near.find((sign) => !this.shown.has(keyOf(sign)))
    if (missing) this.draw(missing)
  }

  private draw(sign: ShownSign): void {
    const canvas = document.createElement('canvas')
    canvas.width = WIDTH
    canvas.height = HEIGHT
    const context = context2D(canvas)
    context.font = '600 25px system-ui, "Segoe UI", Roboto, sans-serif'
    context.textAlign = 'center'
    context.textBaseline = 'middle'
    context.fillStyle = '#24160a'
    const lines = sign.text.split('\n')
    lines.forEach((line, i) => {
      context.fillText(line, WIDTH / 2, HEIGHT / 2 + (i - (lines.length - 1) / 2) * LINE, WIDTH - 2 * MARGIN)
    })
    const texture = new Texture(canvas, { format: 'rgba8', enlarge: 'linear', mipmaps: 'made' })
    const uniforms = { text: { value: texture } }
    const mesh = new Mesh(PLANE, { program: PROGRAM, uniforms, transparent: true, depthWrite: false }, 2.6)
    mesh.matrix = placeOf(sign)
    mesh.bounds = BOUNDS
    this.meshes.add(mesh)
    this.shown.set(keyOf(sign), { mesh, texture })
  }
}

/** Returns the place of a text, before its board. */
function placeOf({ x, y, z, direction, onWall }: ShownSign): Matrix {
  const [aheadX, aheadZ] = AHEAD[direction] ?? AHEAD[0]
  const ahead = (onWall ? 6 : -1) / 16 - BEFORE
  return product(
    translation(x + 0.5 + ahead * aheadX, y + (onWall ? 8 : 11) / 16, z + 0.5 + ahead * aheadZ),
    rotationY(TURN[direction] ?? 0),
  )
}

function keyOf({ x, y, z, text, direction, onWall }: ShownSign): string {
  return [x, y, z, direction, onWall, text].join()
}
