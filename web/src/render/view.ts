// Draws the world as the player sees it. Owns the renderer, the scene and the camera, and is the only module that depends
// on the size of the screen.

import {
  BoxGeometry,
  BufferGeometry,
  EdgesGeometry,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  PerspectiveCamera,
  Scene,
  WebGLRenderer,
  type Object3D,
} from 'three'
import type { Box } from '../world/blocks'
import { SIZE } from '../world/coords'
import { setDaytime } from './daytime'
import type { Camera } from './camera'
import type { ClaimWalls } from './claim-walls'
import { air } from './glsl'
import { Hand } from './hand'
import { Sky } from './sky'
import { ORIGIN_STEP, Terrain } from './terrain'

export class View {
  readonly terrain: Terrain
  readonly hand: Hand
  private claimWalls: ClaimWalls | null = null
  private readonly renderer: WebGLRenderer
  private readonly scene = new Scene()
  private readonly camera = new PerspectiveCamera(75, 1, 0.05, 2400)
  private readonly sky = new Sky()
  private readonly outline: LineSegments
  private scale = 1
  private near = 160 // blocks
  private reach = 0
  private compiling: Promise<void> | null = null
  private compiled = false
  /** The render origin in world blocks: positions in the scene are relative to it. */
  originX = 0
  originZ = 0
  showHand = true
  /** A factor on the light at night and in caves. */
  brightness = 1

  constructor(
    private readonly canvas: HTMLCanvasElement,
    antialias: boolean,
  ) {
    this.renderer = new WebGLRenderer({ canvas, antialias, powerPreference: 'high-performance' })
    this.terrain = new Terrain(this.renderer.getContext() as WebGL2RenderingContext)
    this.hand = new Hand(this.terrain)
    this.renderer.autoClear = false
    this.renderer.info.autoReset = false
    this.outline = new LineSegments(
      new EdgesGeometry(new BoxGeometry(1.004, 1.004, 1.004)),
      new LineBasicMaterial({ color: 0x0a0d10, transparent: true, opacity: 0.7 }),
    )
    this.outline.visible = false
    this.outline.renderOrder = 2.7
    this.scene.add(this.terrain.group, this.sky.dome, this.sky.clouds, this.outline)
    window.addEventListener('resize', () => this.resize())
    this.resize()
  }

  /**
   * Calls restored when the browser has restored a lost WebGL context. three.js uploads again what it still has; the
   * meshes of the land have to be shown again.
   */
  onContextRestored(restored: () => void): void {
    this.canvas.addEventListener('webglcontextlost', () => this.terrain.clear())
    this.canvas.addEventListener('webglcontextrestored', () => {
      this.terrain.clear() // what was shown in the meantime
      this.hand.restore()
      restored()
    })
  }

  add(object: Object3D): void {
    this.scene.add(object)
  }

  /** Loads what shows the borders of claims, unless it is there. */
  async loadClaimWalls(): Promise<ClaimWalls> {
    const { ClaimWalls } = await import('./claim-walls')
    if (!this.claimWalls) {
      this.claimWalls = new ClaimWalls()
      this.scene.add(this.claimWalls.mesh)
    }
    return this.claimWalls
  }

  /** Shows the held block in the world, or in the player's view. */
  carryBlock(inWorld: boolean): void {
    if (inWorld) {
      this.hand.carried = true
      this.scene.add(this.hand.root)
    } else this.hand.takeBack()
  }

  /** Sets the number of pixels rendered per screen pixel, 0.25 to 2. */
  setScale(scale: number): void {
    this.scale = scale
    this.resize()
  }

  setFieldOfView(degrees: number): void {
    this.camera.fov = degrees
    this.camera.updateProjectionMatrix()
  }

  remove(object: Object3D): void {
    this.scene.remove(object)
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
    air.fog.value.set(this.near * 0.55 + (end - this.near) * 0.2, end)
  }

  /** Shows the outline of a box within a block, or hides it. */
  outlineBlock(block: { x: number; y: number; z: number } | null, box: Box): void {
    this.outline.visible = block !== null
    if (!block) return
    const [x0, y0, z0, x1, y1, z1] = box
    this.outline.scale.set(x1 - x0, y1 - y0, z1 - z0)
    this.outline.position.set(block.x + (x0 + x1) / 2, block.y + (y0 + y1) / 2, block.z + (z0 + z1) / 2)
    this.outline.position.x -= this.originX
    this.outline.position.z -= this.originZ
  }

  /** Sets the camera and the render origin; called before anything that is positioned relative to the origin. */
  setCamera(camera: Camera): void {
    const originX = Math.round(camera.x / ORIGIN_STEP) * ORIGIN_STEP
    const originZ = Math.round(camera.z / ORIGIN_STEP) * ORIGIN_STEP
    this.terrain.setOrigin(originX, originZ)
    this.originX = originX
    this.originZ = originZ
    this.claimWalls?.setOrigin(originX, originZ)
    this.camera.position.set(camera.x - originX, camera.y, camera.z - originZ)
    this.camera.rotation.set(camera.pitch, Math.PI - camera.yaw, 0, 'YXZ')
    this.camera.updateMatrixWorld()
    this.terrain.cull(this.camera, camera.x, camera.y, camera.z)
  }

  /**
   * Compiles the shaders of all that has been added, and of the land. The browser takes some frames for it, in which the page is
   * not blocked; draw does nothing until then.
   */
  compile(): Promise<void> {
    return (this.compiling ??= this.compileAll())
  }

  private async compileAll(): Promise<void> {
    const samples = Object.values(this.terrain.materials).map((material) => new Mesh(new BufferGeometry(), material))
    for (const sample of samples) sample.frustumCulled = false
    this.scene.add(...samples)
    await this.renderer.compileAsync(this.scene, this.camera)
    this.renderer.render(this.scene, this.camera) // three.js looks up the uniforms of a program when it is first used
    this.scene.remove(...samples)
    this.compiled = true
  }

  draw(camera: Camera, minutes: number, submerged: boolean, seconds: number, dt: number, speed: number): void {
    if (!this.compiled) {
      void this.compile()
      return
    }
    setDaytime(minutes, this.brightness)
    air.time.value = seconds % 3600
    air.submerged.value = submerged ? 1 : 0
    this.sky.follow(this.camera, camera.x, camera.z, seconds)
    this.hand.update(dt, speed)
    this.renderer.info.reset()
    this.renderer.clear()
    this.renderer.render(this.scene, this.camera)
    if (this.showHand) this.hand.draw(this.renderer, this.camera.aspect)
  }

  /** The height in pixels of a block at a distance of one block. */
  get pixelsPerBlock(): number {
    return this.renderer.domElement.height / (2 * Math.tan((this.camera.fov * Math.PI) / 360))
  }

  get stats(): { calls: number; triangles: number; quads: number } {
    const { calls, triangles } = this.renderer.info.render
    return { calls, triangles, quads: this.terrain.quads }
  }

  /** Returns the pixels of the frame that was just drawn, four bytes each. */
  readPixels(): Uint8Array {
    const gl = this.renderer.getContext()
    const { drawingBufferWidth, drawingBufferHeight } = gl
    const pixels = new Uint8Array(drawingBufferWidth * drawingBufferHeight * 4)
    gl.readPixels(0, 0, drawingBufferWidth, drawingBufferHeight, gl.RGBA, gl.UNSIGNED_BYTE, pixels)
    return pixels
  }

  private resize(): void {
    const width = Math.max(1, window.innerWidth)
    const height = Math.max(1, window.innerHeight)
    this.renderer.setPixelRatio(Math.min(2, window.devicePixelRatio || 1) * this.scale)
    this.renderer.setSize(width, height, false)
    this.canvas.style.width = '100%'
    this.canvas.style.height = '100%'
    this.camera.aspect = width / height
    this.camera.updateProjectionMatrix()
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
