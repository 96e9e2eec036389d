// Programs of two shaders, and the values of their uniforms. A uniform is set by its type in the shader, and only if its value is another one.

import type { Device } from './device'
import { Texture } from './texture'

export type UniformValue = number | ArrayLike<number> | Texture | null

/** A value that any number of materials share. */
export interface Uniform<T extends UniformValue = UniformValue> {
  value: T
}

export type Uniforms = Readonly<Record<string, Readonly<Uniform>>>

const HEAD = '#version 300 es\n'

export class Program {
  private linked: LinkedProgram | null = null

  /** Takes the sources of the shaders, in GLSL ES 3.00 without the line that says so. */
  constructor(
    private readonly vertex: string,
    private readonly fragment: string,
  ) {}

  /** Returns the program on a device, which begins to compile it if that was not asked before. */
  on(device: Device): LinkedProgram {
    if (this.linked?.device !== device) this.linked = new LinkedProgram(device, this.vertex, this.fragment)
    return this.linked
  }
}

interface ActiveUniform {
  name: string
  location: WebGLUniformLocation
  set: (location: WebGLUniformLocation, value: Float32Array) => void
  unit: number // of a texture; −1 for numbers
  values: Float32Array // those that are set
}

export class LinkedProgram {
  readonly handle: WebGLProgram
  private readonly shaders: [shader: WebGLShader, source: string][]
  private uniforms: ActiveUniform[] | null = null // once it is prepared
  /** Why the browser refuses the shaders; empty if it does not, or if that is not known yet. */
  trouble = ''

  constructor(
    readonly device: Device,
    vertex: string,
    fragment: string,
  ) {
    const { gl } = device
    this.handle = gl.createProgram()
    this.shaders = [this.compile(gl.VERTEX_SHADER, HEAD + vertex), this.compile(gl.FRAGMENT_SHADER, HEAD + fragment)]
    gl.linkProgram(this.handle)
  }

  private compile(type: number, source: string): [WebGLShader, string] {
    const { gl } = this.device
    const shader = gl.createShader(type)
    if (!shader) throw new Error('the browser makes no shader')
    gl.shaderSource(shader, source)
    gl.compileShader(shader)
    gl.attachShader(this.handle, shader)
    return [shader, source]
  }

  /** Uses the program with values of its uniforms; each must have one, by the first that names it. It must be prepared. */
  use(...values: Uniforms[]): void {
    this.device.useProgram(this.handle)
    for (const uniform of this.uniforms ?? []) {
      const { name } = uniform
      const value = values.find((some) => name in some)?.[name]?.value
      if (value === undefined) throw new Error(`the uniform ${name} has no value`)
      this.set(uniform, value)
    }
  }

  /** Sets the uniform of a name, if the program reads it. */
  setMatrix(name: string, value: ArrayLike<number>): void {
    const uniform = this.uniforms?.find((other) => other.name === name)
    if (uniform) this.set(uniform, value)
  }

  /** Looks up the uniforms, which waits for the compiler. Returns false if the browser refuses the shaders. */
  prepare(): boolean {
    if (this.uniforms || this.trouble) return !this.trouble
    const { gl } = this.device
    if (!gl.isContextLost() && !gl.getProgramParameter(this.handle, gl.LINK_STATUS)) {
      this.trouble = this.explain()
      return false
    }
    this.device.useProgram(this.handle)
    this.uniforms = this.link()
    return true
  }

  attribute(name: string): number {
    return this.device.gl.getAttribLocation(this.handle, name)
  }

  private set(uniform: ActiveUniform, value: UniformValue): void {
    const { values, unit, location } = uniform
    if (unit >= 0) {
      if (value instanceof Texture) value.bind(this.device, unit)
      return
    }
    let same = true
    for (let i = 0; i < values.length; i++) {
      const number = Math.fround((typeof value === 'number' ? value : (value as ArrayLike<number>)[i]) ?? 0)
      if (values[i] === number) continue
      values[i] = number
      same = false
    }
    if (!same) uniform.set(location, values)
  }

  private link(): ActiveUniform[] {
    const { gl } = this.device
    for (const [shader] of this.shaders) gl.deleteShader(shader)
    const count = (gl.getProgramParameter(this.handle, gl.ACTIVE_UNIFORMS) as number | null) ?? 0
    const uniforms: ActiveUniform[] = []
    let units = 0
    for (let i = 0; i < count; i++) {
      const info = gl.getActiveUniform(this.handle, i)
      const location = info && gl.getUniformLocation(this.handle, info.name)
      if (!location) continue
      const { size, set } = setterOf(gl, info.type)
      const unit = size === 0 ? units++ : -1
      if (unit >= 0) gl.uniform1i(location, unit)
      // NaN is no number: the first value is always set
      uniforms.push({ name: info.name, location, set, unit, values: new Float32Array(size).fill(NaN) })
    }
    return uniforms
  }

  /** Says what is wrong with the program, with the lines of the source. */
  private explain(): string {
    const { gl } = this.device
    for (const [shader, source] of this.shaders) {
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) return explain(gl.getShaderInfoLog(shader) ?? '', source)
    }
    return `the shaders do not fit together: ${gl.getProgramInfoLog(this.handle) ?? ''}`
  }
}

/** Adds to each error of a compiler the line of the source that it names. */
export function explain(log: string, source: string): string {
  const lines = source.split('\n')
  return log
    .split('\n')
    .filter((error) => error.trim() !== '' && error !== '\0')
    .map((error) => {
      const [, line] = /^ERROR: \d+:(\d+)/.exec(error) ?? []
      return line ? `${error}\n  ${(lines[Number(line) - 1] ?? '').trim()}` : error
    })
    .join('\n')
}

/** Returns how many numbers a type has, 0 for a texture, and what sets them. */
function setterOf(gl: WebGL2RenderingContext, type: number): { size: number; set: ActiveUniform['set'] } {
  switch (type) {
    case gl.FLOAT:
      return { size: 1, set: (at, value) => gl.uniform1fv(at, value) }
    case gl.FLOAT_VEC2:
      return { size: 2, set: (at, value) => gl.uniform2fv(at, value) }
    case gl.FLOAT_VEC3:
      return { size: 3, set: (at, value) => gl.uniform3fv(at, value) }
    case gl.FLOAT_MAT4:
      return { size: 16, set: (at, value) => gl.uniformMatrix4fv(at, false, value) }
    case gl.SAMPLER_2D:
    case gl.INT_SAMPLER_2D:
    case gl.SAMPLER_2D_ARRAY:
      return { size: 0, set: () => undefined }
    default:
      throw new Error(`uniforms of the type ${type} are not known`)
  }
}
