// A WebGL 2 context from its creation, or restoration, to its loss: what it is capable of, and its state, of which only changes are set.
// What is on the GPU belongs to a device: with the next one, programs, geometries and textures are uploaded again.

export type Side = 'front' | 'both'

export class Device {
  private readonly parallel: KHR_parallel_shader_compile | null
  private readonly anisotropic: EXT_texture_filter_anisotropic | null
  private program: WebGLProgram | null = null
  private vertexArray: WebGLVertexArrayObject | null = null
  private readonly textures: (WebGLTexture | null)[] = [] // by unit
  private depthWrite = true
  private blend = false
  private side: Side = 'both'

  constructor(readonly gl: WebGL2RenderingContext) {
    this.parallel = gl.getExtension('KHR_parallel_shader_compile')
    this.anisotropic = gl.getExtension('EXT_texture_filter_anisotropic')
    gl.enable(gl.DEPTH_TEST)
    gl.depthFunc(gl.LEQUAL)
    gl.clearColor(0, 0, 0, 1)
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA) // the canvas stays opaque
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1)
  }

  useProgram(program: WebGLProgram): void {
    if (program === this.program) return
    this.program = program
    this.gl.useProgram(program)
  }

  bindVertexArray(vertexArray: WebGLVertexArrayObject | null): void {
    if (vertexArray === this.vertexArray) return
    this.vertexArray = vertexArray
    this.gl.bindVertexArray(vertexArray)
  }

  bindTexture(unit: number, target: number, texture: WebGLTexture): void {
    if (this.textures[unit] === texture) return
    this.textures[unit] = texture
    this.gl.activeTexture(this.gl.TEXTURE0 + unit)
    this.gl.bindTexture(target, texture)
  }

  deleteTexture(texture: WebGLTexture): void {
    this.gl.deleteTexture(texture)
    this.textures.forEach((bound, unit) => {
      if (bound === texture) this.textures[unit] = null
    })
  }

  setDepthWrite(on: boolean): void {
    if (on === this.depthWrite) return
    this.depthWrite = on
    this.gl.depthMask(on)
  }

  setBlend(on: boolean): void {
    if (on === this.blend) return
    this.blend = on
    if (on) this.gl.enable(this.gl.BLEND)
    else this.gl.disable(this.gl.BLEND)
  }

  /** Sets which sides of triangles are drawn; the front is where their vertices are counter-clockwise. */
  setSide(side: Side): void {
    if (side === this.side) return
    this.side = side
    if (side === 'front') this.gl.enable(this.gl.CULL_FACE)
    else this.gl.disable(this.gl.CULL_FACE)
  }

  clear(colour: boolean): void {
    this.setDepthWrite(true)
    const { gl } = this
    gl.clear(colour ? gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT : gl.DEPTH_BUFFER_BIT)
  }

  /** Reports whether asking for the status of a program would not block the page. */
  isCompiled(program: WebGLProgram): boolean {
    if (!this.parallel || this.gl.isContextLost()) return true
    return this.gl.getProgramParameter(program, this.parallel.COMPLETION_STATUS_KHR) as boolean
  }

  /** Filters the bound texture from a slanted view too. */
  filterAnisotropically(target: number, samples: number): void {
    const { gl, anisotropic } = this
    if (!anisotropic) return
    const most = gl.getParameter(anisotropic.MAX_TEXTURE_MAX_ANISOTROPY_EXT) as number
    gl.texParameterf(target, anisotropic.TEXTURE_MAX_ANISOTROPY_EXT, Math.min(samples, most))
  }
}
