// Draws the world as the player sees it. Owns the renderer and the camera, and is the only module that depends on the size of the
// screen.

import { PerspectiveCamera } from '../gl/camera'
import { multiply, scaling, translation } from '../gl/matrix'
import { Mesh } from '../gl/mesh'
import { Program } from '../gl/program'
import { Renderer } from '../gl/renderer'
import { cubeEdges } from '../gl/shapes'
import type { Box } from '../world/blocks'
import { SIZE } from '../world/coords'
import { setDaytime } from './daytime'
import type { Camera } from './camera'
import type { ClaimWalls } from './claim-walls'
import { air } from './glsl'
import { Hand } from './hand'
import { Sky } from './sky'
import { Terrain } from './terrain'

/** The render origin moves in steps of this many blocks. */
const ORIGIN_STEP = 4096

const OUTLINE_VERTEX = /* glsl */ `
uniform mat4 modelViewMatrix, projectionMatrix;
in vec3 position;
void main() { gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }
`
const OUTLINE_FRAGMENT = /* glsl */ `
precision mediump float;
out vec4 colour_;
void main() { colour_ = vec4(0.04, 0.05, 0.063, 0.7); }
`

export class View {
  readonly terrain: Terrain
  readonly hand: Hand
  private claimWalls: ClaimWalls | null = null
  private readonly renderer: Renderer
  private readonly sources = new Set<Iterable<Mesh>>()
  private readonly aids: Mesh[] = []
  private readonly camera = new PerspectiveCamera(75, 0.05, 2400)
  private readonly sky = new Sky()
  private readonly outline: Mesh
  private scale = 1
  private near = 160 // blocks
  private reach = 0
  private compiling: Promise<void> | null = null
  private compiled = false
  /** The render origin in world blocks: what moves in each frame is placed relative to it. */
  originX = 0
  originZ = 0
  showHand = true
  /** Draws what is not of the world, too: names, the outline of the block aimed at, borders of claims. */
  showAids = true
  /** A factor on the light at night and in caves. */
  brightness = 1

  constructor(
    private readonly canvas: HTMLCanvasElement,
    antialias: boolean,
  ) {
    this.renderer = new Renderer(canvas, antialias)
    this.terrain = new Terrain(this.renderer.context)
    this.hand = new Hand(this.renderer.context, this.terrain.tiles)
    const program = new Program(OUTLINE_VERTEX, OUTLINE_FRAGMENT)
    this.outline = new Mesh(cubeEdges(1.004), { program, uniforms: {}, transparent: true, primitive: 'lines' }, 2.7)
    this.outline.visible = false
    for (const source of [this.terrain.meshes, this.sky.meshes]) this.add(source)
    this.addAid(this.outline)
    window.addEventListener('resize', () => this.resize())
    this.resize()
  }

  /** For those who fill buffers themselves. */
  get context(): WebGL2RenderingContext {
    return this.renderer.context
  }

  /** Calls lost when the browser has taken the WebGL context away, and restored when it is back: then the land has to be shown again. */
  onContextLost(lost: () => void, restored: () => void): void {
    this.renderer.onLoss(
      () => {
        this.terrain.clear()
        lost()
      },
      () => {
        this.terrain.clear() // what was shown in the meantime
        this.compiling = null
        this.compiled = false
        this.hand.restore()
        this.resize()
        restored()
      },
    )
  }

  /** Calls refused once if the browser cannot draw a part of the picture. */
  onRefusal(refused: () => void): void {
    this.renderer.onRefusal(refused)
  }

  /** Draws these meshes too; there may be others of them in each frame. */
  add(meshes: Iterable<Mesh>): void {
    this.sources.add(meshes)
  }

  /** Draws a mesh that is not of the world, but shows the player something of it. */
  addAid(mesh: Mesh): void {
    this.aids.push(mesh)
  }

  /** Loads what shows the borders of claims, unless it is there. */
  async loadClaimWalls(): Promise<ClaimWalls> {
    const { ClaimWalls } = await import('./claim-walls')
    if (!this.claimWalls) {
      this.claimWalls = new ClaimWalls()
      this.addAid(this.claimWalls.mesh)
    }
    return this.claimWalls
  }

  /** Sets the number of pixels rendered per screen pixel, 0.25 to 2. */
  setScale(scale: number): void {
    this.scale = scale
    this.resize()
  }

  setFieldOfView(degrees: number): void {
    this.camera.fieldOfView = degrees
  }

  remove(meshes: Iterable<Mesh>): void {
    this.sources.delete(meshes)
  }

  /** Sets the distance of the loaded land, in chunks. */
  setDistance(chunks: number): void {
    this.near = Math.max(1, chunks - 0.35) * SIZE
    this.setFog()
  }

  /** Sets how far the land reaches beyond the chunks that are loaded, in blocks; 0 if it does not. */
  setReach(blocks: number): void {
    if (blocks === this.reach) return
    this.reach = blocks
    this.setFog()
  }

  /** Sets the fog so that it is complete where the land ends. */
  private setFog(): void {
    const end = Math.max(this.near, this.reach)
    air.edge.value = this.near
    air.fog.value = [this.near * 0.55 + (end - this.near) * 0.2, end]
  }

  /** Shows the outline of a box within a block, or hides it. */
  outlineBlock(block: { x: number; y: number; z: number } | null, box: Box): void {
    this.outline.visible = block !== null
    if (!block) return
    const [x0, y0, z0, x1, y1, z1] = box
    this.outline.matrix = multiply(
      translation(block.x + (x0 + x1) / 2, block.y + (y0 + y1) / 2, block.z + (z0 + z1) / 2),
      scaling(x1 - x0, y1 - y0, z1 - z0),
    )
  }

  /** Sets the camera and the render origin; called before anything that is positioned relative to the origin. */
  setCamera(camera: Camera): void {
    const originX = Math.round(camera.x / ORIGIN_STEP) * ORIGIN_STEP
    const originZ = Math.round(camera.z / ORIGIN_STEP) * ORIGIN_STEP
    this.camera.originX = this.originX = originX
    this.camera.originZ = this.originZ = originZ
    this.camera.place(camera.x - originX, camera.y, camera.z - originZ, Math.PI - camera.yaw, camera.pitch)
  }

  /**
   * Compiles the shaders of all that has been added, and of the land. The browser takes some frames for it, in which the page is
   * not blocked; draw does nothing until then.
   */
  compile(): Promise<void> {
    return (this.compiling ??= this.compileAll())
  }

  private async compileAll(): Promise<void> {
    const programs = new Set<Program>()
    for (const source of [...this.sources, this.aids]) for (const { material } of source) programs.add(material.program)
    if (await this.renderer.compile(programs)) this.compiled = true
  }

  draw(camera: Camera, minutes: number, submerged: boolean, seconds: number, dt: number, speed: number): void {
    if (!this.compiled) {
      void this.compile()
      return
    }
    setDaytime(minutes, this.brightness)
    air.time.value = seconds % 3600
    air.submerged.value = submerged ? 1 : 0
    this.terrain.cull(this.camera, camera.x, camera.y, camera.z)
    this.sky.follow(this.camera, camera.x, camera.z, seconds)
    this.hand.update(dt, speed)
    this.renderer.clear()
    const aids = this.showAids ? this.aids : []
    const carried = this.hand.carried ? this.hand.meshes : []
    this.renderer.draw([...this.sources, aids, carried], this.camera)
    if (this.showHand) this.hand.draw(this.renderer, this.camera.aspect)
  }

  /** The height in pixels of a block at a distance of one block. */
  get pixelsPerBlock(): number {
    return this.renderer.height / (2 * Math.tan((this.camera.fieldOfView * Math.PI) / 360))
  }

  get stats(): { calls: number; triangles: number; quads: number } {
    const { calls, triangles } = this.renderer
    return { calls, triangles, quads: this.terrain.quads }
  }

  /** Returns the pixels of the frame that was just drawn, four bytes each. */
  readPixels(): Uint8Array {
    return this.renderer.readPixels()
  }

  private resize(): void {
    const width = Math.max(1, window.innerWidth)
    const height = Math.max(1, window.innerHeight)
    const ratio = Math.min(2, window.devicePixelRatio || 1) * this.scale
    this.renderer.resize(width * ratio, height * ratio)
    this.canvas.style.width = '100%'
    this.canvas.style.height = '100%'
    this.camera.aspect = width / height
  }
}

/** Reports whether this browser renders in software, in which case the default quality is low. */
export function drawsInSoftware(): boolean {
  const context = document.createElement('canvas').getContext('webgl2')
  if (!context) return true
  const info = context.getExtension('WEBGL_debug_renderer_info')
  const name = String(context.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : context.RENDERER))
  context.getExtension('WEBGL_lose_context')?.loseContext()
  return /swiftshader|llvmpipe|software|basic render/i.test(name)
}
