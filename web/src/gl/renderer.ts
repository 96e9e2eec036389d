// Draws meshes on a canvas with WebGL 2.

import type { PerspectiveCamera } from './camera'
import { Device } from './device'
import { multiply, type Matrix } from './matrix'
import { drawOrder, type Material, type Mesh } from './mesh'
import type { LinkedProgram, Program, Uniforms } from './program'

const POLL_MS = 10 // until programs are compiled

export class Renderer {
  private readonly gl: WebGL2RenderingContext
  private device: Device
  /** Of the last frame. */
  calls = 0
  triangles = 0
  private refused: () => void = () => undefined
  private isRefused = false // and refused was called
  private readonly model: Matrix = new Float64Array(16)
  private readonly modelView: Matrix = new Float64Array(16)

  constructor(
    private readonly canvas: HTMLCanvasElement,
    antialias: boolean,
  ) {
    const gl = canvas.getContext('webgl2', { antialias, powerPreference: 'high-performance' })
    if (!gl) throw new Error('this browser has no WebGL 2')
    this.gl = gl
    this.device = new Device(gl)
  }

  /** The context, for those who fill buffers themselves. */
  get context(): WebGL2RenderingContext {
    return this.gl
  }

  /** Calls lost when the GPU has lost everything, and restored when it can be uploaded again. Until then nothing is drawn. */
  onLoss(lost: () => void, restored: () => void): void {
    this.canvas.addEventListener('webglcontextlost', (event) => {
      event.preventDefault() // or it would not be restored
      lost()
    })
    this.canvas.addEventListener('webglcontextrestored', () => {
      this.device = new Device(this.gl)
      restored()
    })
  }

  /** Calls refused once if the browser refuses shaders: their meshes are not drawn. */
  onRefusal(refused: () => void): void {
    this.refused = refused
  }

  /** Reports whether a program can be used. */
  private prepare(program: LinkedProgram): boolean {
    if (program.prepare()) return true
    if (!this.isRefused) {
      this.isRefused = true
      console.error(program.trouble)
      this.refused()
    }
    return false
  }

  resize(width: number, height: number): void {
    this.canvas.width = Math.max(1, Math.floor(width))
    this.canvas.height = Math.max(1, Math.floor(height))
    this.gl.viewport(0, 0, this.canvas.width, this.canvas.height)
  }

  get height(): number {
    return this.canvas.height
  }

  /**
   * Compiles programs. The browser takes some frames for it, in which the page is not blocked. Returns false if the context was lost
   * meanwhile.
   */
  async compile(programs: Iterable<Program>): Promise<boolean> {
    const { device } = this
    const linked = [...programs].map((program) => program.on(device))
    while (!linked.every(({ handle }) => device.isCompiled(handle))) {
      await new Promise((go) => setTimeout(go, POLL_MS))
      if (this.device !== device) return false
    }
    if (this.gl.isContextLost()) return false
    for (const program of linked) this.prepare(program)
    return true
  }

  /** Begins a frame. */
  clear(): void {
    this.calls = 0
    this.triangles = 0
    this.device.clear(true)
  }

  /** What is drawn from now on covers all that was drawn before. */
  clearDepth(): void {
    this.device.clear(false)
  }

  draw(sources: Iterable<Iterable<Mesh>>, camera: PerspectiveCamera): void {
    if (this.gl.isContextLost()) return
    const views: Uniforms = {
      viewMatrix: { value: camera.view },
      projectionMatrix: { value: camera.projection },
      cameraPosition: { value: camera.position },
      modelMatrix: { value: this.model },
      modelViewMatrix: { value: this.modelView },
    }
    let before: Material | null = null
    for (const mesh of drawOrder(sources, camera)) {
      const { material } = mesh
      this.model.set(mesh.matrix)
      this.model[12] = (mesh.matrix[12] ?? 0) - camera.originX
      this.model[14] = (mesh.matrix[14] ?? 0) - camera.originZ
      multiply(camera.view, this.model, this.modelView)
      const program = material.program.on(this.device)
      if (!this.prepare(program)) continue
      if (material === before) {
        program.setMatrix('modelMatrix', this.model)
        program.setMatrix('modelViewMatrix', this.modelView)
      } else {
        this.device.setDepthWrite(material.depthWrite ?? true)
        this.device.setBlend(material.transparent ?? false)
        this.device.setSide(material.side ?? 'front')
        program.use(views, material.uniforms)
        before = material
      }
      mesh.geometry.bind(this.device, program)
      this.call(mesh)
    }
  }

  private call({ geometry, material }: Mesh): void {
    const { gl } = this
    const { index, instances, count } = geometry
    const primitive = material.primitive ?? 'triangles'
    const mode = { triangles: gl.TRIANGLES, lines: gl.LINES, points: gl.POINTS }[primitive]
    this.calls++
    if (primitive === 'triangles') this.triangles += (count / 3) * (instances ?? 1)
    const type = index?.values instanceof Uint16Array ? gl.UNSIGNED_SHORT : gl.UNSIGNED_INT
    if (instances === null) {
      if (index) gl.drawElements(mode, count, type, 0)
      else gl.drawArrays(mode, 0, count)
    } else if (index) gl.drawElementsInstanced(mode, count, type, 0, instances)
    else gl.drawArraysInstanced(mode, 0, count, instances)
  }

  /** Returns the pixels of the frame that was just drawn, four bytes each. */
  readPixels(): Uint8Array {
    const { gl } = this
    const { drawingBufferWidth, drawingBufferHeight } = gl
    const pixels = new Uint8Array(drawingBufferWidth * drawingBufferHeight * 4)
    gl.readPixels(0, 0, drawingBufferWidth, drawingBufferHeight, gl.RGBA, gl.UNSIGNED_BYTE, pixels)
    return pixels
  }
}
