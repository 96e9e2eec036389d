// The texts of the signs near the player, each on a quad in front of its board. A text is drawn on a canvas of its own when the player comes near, one
// in an update, so that no frame waits for many.

import { CanvasTexture, GLSL3, Group, LinearMipmapLinearFilter, Mesh, PlaneGeometry, RawShaderMaterial } from 'three'
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

type Quad = Mesh<PlaneGeometry, RawShaderMaterial>

export class SignTexts {
  readonly group = new Group()
  private readonly plane = new PlaneGeometry(0.96, 0.48)
  private baseX = 0
  private baseZ = 0
  private readonly quads = new Map<string, { quad: Quad; sign: ShownSign }>()

  /** The number of texts that are drawn. */
  get count(): number {
    return this.quads.size
  }

  /** Sets the render origin. */
  setOrigin(x: number, z: number): void {
    this.group.position.set(this.baseX - x, 0, this.baseZ - z)
  }

  /** Shows the signs that are near a place. */
  show(signs: readonly ShownSign[], x: number, y: number, z: number): void {
    const distance = (sign: ShownSign) => Math.hypot(sign.x - x, sign.y - y, sign.z - z)
    const near = signs.filter((sign) => distance(sign) < REACH).sort((a, b) => distance(a) - distance(b))
    near.splice(MOST)
    const wanted = new Map(near.map((sign) => [keyOf(sign), sign]))
    for (const [key, { quad }] of this.quads) {
      if (wanted.has(key)) continue
      this.remove(quad)
      this.quads.delete(key)
    }
    const missing = near.find((sign) => !this.quads.has(keyOf(sign)))
    if (missing) this.quads.set(keyOf(missing), { quad: this.draw(missing), sign: missing })
    this.baseX = Math.round(x) // positions are relative to it: large ones are not exact
    this.baseZ = Math.round(z)
    for (const { quad, sign } of this.quads.values()) place(quad, sign, this.baseX, this.baseZ)
  }

  private draw({ text }: ShownSign): Quad {
    const canvas = document.createElement('canvas')
    canvas.width = WIDTH
    canvas.height = HEIGHT
    const context = context2D(canvas)
    context.font = '600 25px system-ui, "Segoe UI", Roboto, sans-serif'
    context.textAlign = 'center'
    context.textBaseline = 'middle'
    context.fillStyle = '#24160a'
    const lines = text.split('\n')
    lines.forEach((line, i) => {
      context.fillText(line, WIDTH / 2, HEIGHT / 2 + (i - (lines.length - 1) / 2) * LINE, WIDTH - 2 * MARGIN)
    })
    const texture = new CanvasTexture(canvas)
    texture.minFilter = LinearMipmapLinearFilter
    const material = new RawShaderMaterial({
      glslVersion: GLSL3,
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      uniforms: { text: { value: texture } },
      transparent: true,
      depthWrite: false,
    })
    const quad = new Mesh(this.plane, material)
    quad.renderOrder = 2.6
    this.group.add(quad)
    return quad
  }

  private remove(quad: Quad): void {
    this.group.remove(quad)
    const texture: unknown = quad.material.uniforms.text?.value
    if (texture instanceof CanvasTexture) texture.dispose()
    quad.material.dispose()
  }
}

/** Puts a quad before its board, relative to a base. */
function place(quad: Quad, { x, y, z, direction, onWall }: ShownSign, baseX: number, baseZ: number): void {
  const [aheadX, aheadZ] = AHEAD[direction] ?? AHEAD[0]
  const ahead = (onWall ? 6 : -1) / 16 - BEFORE
  quad.position.set(x + 0.5 + ahead * aheadX - baseX, y + (onWall ? 8 : 11) / 16, z + 0.5 + ahead * aheadZ - baseZ)
  quad.rotation.y = TURN[direction] ?? 0
}

function keyOf({ x, y, z, text, direction, onWall }: ShownSign): string {
  return [x, y, z, direction, onWall, text].join()
}
