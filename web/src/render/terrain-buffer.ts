// The quads of a chunk in one buffer on the GPU, of which nothing is kept in memory. A section that changes is replaced where
// it is, if it fits; otherwise it goes to the end. When the end is reached, the sections are copied to a larger buffer, which the
// GPU does by itself.

import { Geometry, Index, type Ranges } from '../gl/geometry'
import { Mesh, type Material } from '../gl/mesh'
import { WORDS_PER_QUAD, WORDS_PER_VERTEX } from '../mesh/mesher'

const BYTES_PER_QUAD = WORDS_PER_QUAD * 4
/** The share of a buffer that is free after a section has changed. */
const SLACK = 1 / 8

/** The index that all geometries of quads share: two triangles each. It grows; geometries keep the index that they have. */
export class QuadIndex {
  private index = quadIndex(1 << 14)

  /** Returns an index of at least this many quads. */
  of(quads: number): Index {
    if (this.index.values.length < quads * 6) this.index = quadIndex(2 ** Math.ceil(Math.log2(quads)))
    return this.index
  }
}

function quadIndex(quads: number): Index {
  const index = new Uint32Array(quads * 6)
  for (let q = 0, i = 0, v = 0; q < quads; q++, v += 4) {
    index[i++] = v
    index[i++] = v + 1
    index[i++] = v + 2
    index[i++] = v
    index[i++] = v + 2
    index[i++] = v + 3
  }
  return new Index(index)
}

/** A place in the buffer, in quads. */
interface Place {
  at: number
  quads: number
  capacity: number
}

export class QuadBuffer {
  /** It is another one when the buffer has grown. */
  geometry = new Geometry({})
  private buffer: WebGLBuffer | null = null
  private readonly places = new Map<number, Place>() // by section
  private end = 0
  /** In quads. */
  capacity = 0

  constructor(
    private readonly gl: WebGL2RenderingContext,
    private readonly index: QuadIndex,
  ) {}

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
    this.geometry.dispose()
    this.geometry = new Geometry({
      words: { words: { buffer, size: WORDS_PER_VERTEX } },
      index: this.index.of(this.capacity),
    })
  }
}

/** The quads of a buffer that are drawn with a material. */
export class Batch extends Mesh {
  override readonly ranges = { count: 0, starts: new Int32Array(16), counts: new Int32Array(16) } satisfies Ranges

  constructor(
    private readonly buffer: QuadBuffer,
    material: Material,
    order: number,
  ) {
    super(buffer.geometry, material, order)
  }

  clear(): void {
    this.ranges.count = 0
    this.geometry = this.buffer.geometry
  }

  addRange(from: number, to: number): void {
    const { ranges } = this
    const at = ranges.count++
    if (at === ranges.starts.length) {
      ranges.starts = grown(ranges.starts)
      ranges.counts = grown(ranges.counts)
    }
    ranges.starts[at] = from * 6 * 4
    ranges.counts[at] = (to - from) * 6
  }
}

function grown(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const more = new Int32Array(array.length * 2)
  more.set(array)
  return more
}
