// The quads of a chunk in one buffer on the GPU, of which nothing is kept in memory. A section that changes is replaced where
// it is, if it fits; otherwise it goes to the end. When the end is reached, the sections are copied to a larger buffer, which the
// GPU does by itself.

import {
  BufferAttribute,
  BufferGeometry,
  GLBufferAttribute,
  Mesh,
  Sphere,
  Vector3,
  type RawShaderMaterial,
} from 'three'
import { WORDS_PER_QUAD, WORDS_PER_VERTEX } from '../mesh/mesher'
import { SIZE } from '../world/coords'

const BYTES_PER_QUAD = WORDS_PER_QUAD * 4
/** The share of a buffer that is free after a section has changed. */
const SLACK = 1 / 8

/** Where three.js sorts a chunk: its middle. */
const MIDDLE = new Sphere(new Vector3(SIZE / 2, 2 * SIZE, SIZE / 2), 2 * SIZE)

/** The index that all geometries of quads share: two triangles each. It grows; geometries keep the index that they have. */
export class QuadIndex {
  private attribute = quadIndex(1 << 14)

  /** Returns an index of at least this many quads. */
  of(quads: number): BufferAttribute {
    if (this.attribute.count < quads * 6) this.attribute = quadIndex(2 ** Math.ceil(Math.log2(quads)))
    return this.attribute
  }
}

function quadIndex(quads: number): BufferAttribute {
  const index = new Uint32Array(quads * 6)
  for (let q = 0, i = 0, v = 0; q < quads; q++, v += 4) {
    index[i++] = v
    index[i++] = v + 1
    index[i++] = v + 2
    index[i++] = v
    index[i++] = v + 2
    index[i++] = v + 3
  }
  return new BufferAttribute(index, 1)
}

/** A place in the buffer, in quads. */
interface Place {
  at: number
  quads: number
  capacity: number
}

export class QuadBuffer {
  readonly geometry = new BufferGeometry()
  private buffer: WebGLBuffer | null = null
  private readonly places = new Map<number, Place>() // by section
  private end = 0
  /** In quads. */
  capacity = 0

  constructor(
    private readonly gl: WebGL2RenderingContext,
    private readonly index: QuadIndex,
  ) {
    this.geometry.boundingSphere = MIDDLE
  }

  /** The number of quads. */
  get used(): number {
    let quads = 0
    for (const place of this.places.values()) quads += place.quads
    return quads
  }

  /** Returns the index of a section's first quad, −1 if it has none. */
  at(section: number): number {
    return this.places.get(section)?.at ?? -1
  }

  /** Sets the quads of a section. */
  put(section: number, parts: Uint32Array[]): void {
    const quads = parts.reduce((sum, { length }) => sum + length, 0) / WORDS_PER_QUAD
    const before = this.places.get(section)
    if (quads === 0) {
      this.places.delete(section)
      return
    }
    let place = before
    if (!place || place.capacity < quads) {
      this.places.delete(section)
      if (this.end + quads > this.capacity) this.grow(quads, before !== undefined)
      place = { at: this.end, quads, capacity: quads }
      this.end += quads
      this.places.set(section, place)
    }
    place.quads = quads
    const { gl } = this
    gl.bindBuffer(gl.COPY_WRITE_BUFFER, this.buffer)
    let at = place.at * BYTES_PER_QUAD
    for (const words of parts) {
      if (words.length > 0) gl.bufferSubData(gl.COPY_WRITE_BUFFER, at, words)
      at += words.byteLength
    }
    gl.bindBuffer(gl.COPY_WRITE_BUFFER, null)
  }

  dispose(): void {
    this.geometry.setIndex(null) // it is shared
    this.geometry.dispose()
    this.gl.deleteBuffer(this.buffer)
    this.buffer = null
  }

  /** Moves the sections to a buffer that has room for more quads, close together. */
  private grow(quads: number, slack: boolean): void {
    const { gl } = this
    const needed = this.used + quads
    this.capacity = slack ? Math.ceil(needed * (1 + SLACK)) : needed
    const buffer = gl.createBuffer()
    gl.bindBuffer(gl.COPY_WRITE_BUFFER, buffer)
    gl.bufferData(gl.COPY_WRITE_BUFFER, this.capacity * BYTES_PER_QUAD, gl.STATIC_DRAW)
    gl.bindBuffer(gl.COPY_READ_BUFFER, this.buffer)
    this.end = 0
    for (const place of this.places.values()) {
      const [from, to, size] = [place.at, this.end, place.quads].map((quads) => quads * BYTES_PER_QUAD)
      gl.copyBufferSubData(gl.COPY_READ_BUFFER, gl.COPY_WRITE_BUFFER, from ?? 0, to ?? 0, size ?? 0)
      place.at = this.end
      place.capacity = place.quads
      this.end += place.quads
    }
    gl.bindBuffer(gl.COPY_READ_BUFFER, null)
    gl.bindBuffer(gl.COPY_WRITE_BUFFER, null)
    gl.deleteBuffer(this.buffer)
    this.buffer = buffer
    // a new attribute: three.js does not notice another buffer in the same one
    const words = new GLBufferAttribute(buffer, gl.UNSIGNED_INT, WORDS_PER_VERTEX, 4, this.capacity * 4)
    this.geometry.setAttribute('words', words as unknown as BufferAttribute)
    this.geometry.setIndex(this.index.of(this.capacity))
  }
}

/** What three.js draws with WEBGL_multi_draw: its own BatchedMesh has these properties, and more than is needed here. */
export class Batch extends Mesh {
  readonly isBatchedMesh = true
  readonly _multiDrawInstances = null
  readonly _colorsTexture = null
  _multiDrawStarts = new Int32Array(16) // in bytes of the index
  _multiDrawCounts = new Int32Array(16)
  _multiDrawCount = 0

  constructor(buffer: QuadBuffer, material: RawShaderMaterial, order: number) {
    super(buffer.geometry, material)
    this.matrixAutoUpdate = false
    this.frustumCulled = false
    this.renderOrder = order
  }

  addRange(from: number, to: number): void {
    const at = this._multiDrawCount++
    if (at === this._multiDrawStarts.length) {
      this._multiDrawStarts = grown(this._multiDrawStarts)
      this._multiDrawCounts = grown(this._multiDrawCounts)
    }
    this._multiDrawStarts[at] = from * 6 * 4
    this._multiDrawCounts[at] = (to - from) * 6
  }
}

function grown(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const more = new Int32Array(array.length * 2)
  more.set(array)
  return more
}
