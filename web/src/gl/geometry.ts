// Vertices for a program: attributes, which may belong to instances, and an index. What is here is uploaded when it is drawn first, and after
// changes.

import type { Device } from './device'
import type { LinkedProgram } from './program'

type Numbers = Float32Array | Uint8Array | Uint8ClampedArray | Uint16Array

export class Attribute<T extends Numbers = Numbers> {
  /** The number of items that have changed: the first ones. */
  changed = 0

  constructor(
    readonly values: T,
    readonly size: number, // numbers of an item
    /** normalized: the numbers of whole bytes are 0 to 1 in the shader; instanced: an item for each instance, and not each vertex. */
    readonly options: { normalized?: boolean; instanced?: boolean } = {},
  ) {}

  get count(): number {
    return this.values.length / this.size
  }

  /** Uploads the first items again before the next use. */
  change(count = this.count): void {
    this.changed = Math.max(this.changed, count)
  }
}

/** Numbers of an unsigned type that are on the GPU already; this buffer belongs to others. */
export interface Words {
  buffer: WebGLBuffer
  size: number
}

interface Uploaded {
  device: Device
  buffers: Map<Attribute, WebGLBuffer>
  arrays: Map<LinkedProgram, WebGLVertexArrayObject>
}

export interface GeometryOptions {
  attributes?: Readonly<Record<string, Attribute>>
  index?: Index | null
  words?: Readonly<Record<string, Words>>
}

/** An index, which geometries may share. */
export class Index {
  /** How many of the values are drawn: the first ones. */
  count: number
  private changed = false
  private uploaded: { device: Device; buffer: WebGLBuffer } | null = null

  constructor(public values: Uint16Array | Uint32Array) {
    this.count = values.length
  }

  /** Uploads the values again before the next use. */
  change(): void {
    this.changed = true
  }

  /** Binds it to the vertex array that is bound. */
  bind(device: Device): void {
    const { gl } = device
    if (this.uploaded?.device !== device) {
      this.uploaded = { device, buffer: gl.createBuffer() }
      this.changed = true
    }
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.uploaded.buffer)
    this.upload(device)
  }

  /** Uploads the values if they have changed; the index is bound. */
  upload({ gl }: Device): void {
    if (!this.changed) return
    this.changed = false
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, this.values, gl.DYNAMIC_DRAW, 0, this.count)
  }

  dispose(): void {
    this.uploaded?.device.gl.deleteBuffer(this.uploaded.buffer)
    this.uploaded = null
  }
}

export class Geometry {
  /** The number of instances; null if there are none of their own. */
  instances: number | null = null
  private uploaded: Uploaded | null = null
  readonly attributes: Readonly<Record<string, Attribute>>
  readonly index: Index | null
  private readonly words: Readonly<Record<string, Words>>

  constructor({ attributes = {}, index = null, words = {} }: GeometryOptions) {
    this.attributes = attributes
    this.index = index
    this.words = words
  }

  /** The number of vertices, or of indices, that a call draws. */
  get count(): number {
    if (this.index) return this.index.count
    return Object.values(this.attributes).find(({ options }) => !options.instanced)?.count ?? 0
  }

  /** Binds the attributes for a program, and uploads what has changed. */
  bind(device: Device, program: LinkedProgram): void {
    const { gl } = device
    if (this.uploaded?.device !== device) this.uploaded = this.upload(device)
    const { buffers, arrays } = this.uploaded
    for (const [attribute, buffer] of buffers) {
      if (attribute.changed === 0) continue
      gl.bindBuffer(gl.COPY_WRITE_BUFFER, buffer)
      gl.bufferSubData(gl.COPY_WRITE_BUFFER, 0, attribute.values, 0, attribute.changed * attribute.size)
      attribute.changed = 0
    }
    let array = arrays.get(program)
    if (!array) arrays.set(program, (array = this.arrayFor(device, program, buffers)))
    device.bindVertexArray(array)
    this.index?.upload(device)
  }

  /** Frees what is on the GPU, but for an index, which others may share, and for words. */
  dispose(): void {
    if (!this.uploaded) return
    const { device, buffers, arrays } = this.uploaded
    device.bindVertexArray(null)
    for (const array of arrays.values()) device.gl.deleteVertexArray(array)
    for (const buffer of buffers.values()) device.gl.deleteBuffer(buffer)
    this.uploaded = null
  }

  private upload(device: Device): Uploaded {
    const { gl } = device
    const buffers = new Map<Attribute, WebGLBuffer>()
    for (const attribute of Object.values(this.attributes)) {
      const buffer = gl.createBuffer()
      buffers.set(attribute, buffer)
      gl.bindBuffer(gl.COPY_WRITE_BUFFER, buffer)
      gl.bufferData(
        gl.COPY_WRITE_BUFFER,
        attribute.values,
        attribute.options.instanced ? gl.DYNAMIC_DRAW : gl.STATIC_DRAW,
      )
      attribute.changed = 0
    }
    return { device, buffers, arrays: new Map() }
  }

  private arrayFor(device: Device, program: LinkedProgram, buffers: Uploaded['buffers']): WebGLVertexArrayObject {
    const { gl } = device
    const array = gl.createVertexArray()
    device.bindVertexArray(array)
    for (const [name, attribute] of Object.entries(this.attributes)) {
      const at = program.attribute(name)
      if (at < 0) continue // the compiler has left it out
      const { normalized = false, instanced } = attribute.options
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers.get(attribute) ?? null)
      gl.enableVertexAttribArray(at)
      gl.vertexAttribPointer(at, attribute.size, typeOf(gl, attribute.values), normalized, 0, 0)
      if (instanced) gl.vertexAttribDivisor(at, 1)
    }
    for (const [name, { buffer, size }] of Object.entries(this.words)) {
      const at = program.attribute(name)
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer)
      gl.enableVertexAttribArray(at)
      gl.vertexAttribIPointer(at, size, gl.UNSIGNED_INT, 0, 0)
    }
    this.index?.bind(device)
    return array
  }
}

function typeOf(gl: WebGL2RenderingContext, values: Numbers): number {
  if (values instanceof Float32Array) return gl.FLOAT
  return values instanceof Uint16Array ? gl.UNSIGNED_SHORT : gl.UNSIGNED_BYTE
}
