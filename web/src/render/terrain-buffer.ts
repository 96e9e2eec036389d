// The quads of the land in one buffer on the GPU, of which nothing is kept in memory. It consists of pages; a section has some that are side by
// side. A texture has the chunk of each page, by which the vertex shader knows where a vertex is: so all chunks are drawn together. The index
// names the quads that can be seen, and is written again when that has changed.

import { Geometry, Index } from '../gl/geometry'
import { Mesh, type Material } from '../gl/mesh'
import { Texture } from '../gl/texture'
import { WORDS_PER_QUAD, WORDS_PER_VERTEX } from '../mesh/mesher'

/** The shader divides gl_VertexID by the vertices of a page, and pages are in rows of the texture. */
export const PAGE_QUADS = 64
export const PAGES_PER_ROW = 64
const BYTES_PER_QUAD = WORDS_PER_QUAD * 4
const BYTES_PER_PAGE = PAGE_QUADS * BYTES_PER_QUAD
const GROWTH = 1.25

/** Pages side by side: those of a section, or free ones. */
export interface Pages {
  first: number
  count: number
}

/** Which pages are free. */
export class PageList {
  private free: Pages[] = [] // in the order of the pages, never side by side
  /** The number of all pages. */
  total = 0

  /** Takes the first free pages that are enough; null if there are none. */
  take(count: number): Pages | null {
    const at = this.free.findIndex((pages) => pages.count >= count)
    const found = this.free[at]
    if (!found) return null
    const taken = { first: found.first, count }
    found.first += count
    found.count -= count
    if (found.count === 0) this.free.splice(at, 1)
    return taken
  }

  give({ first, count }: Pages): void {
    let at = this.free.findIndex((pages) => pages.first > first)
    if (at < 0) at = this.free.length
    const before = this.free[at - 1]
    const after = this.free[at]
    const joinsAfter = after?.first === first + count
    if (before && before.first + before.count === first) {
      before.count += count + (joinsAfter ? after.count : 0)
      if (joinsAfter) this.free.splice(at, 1)
    } else if (joinsAfter) {
      after.first = first
      after.count += count
    } else this.free.splice(at, 0, { first, count })
  }

  /** Adds free pages at the end. */
  grow(total: number): void {
    this.give({ first: this.total, count: total - this.total })
    this.total = total
  }
}

export class QuadBuffer {
  private pages = new PageList()
  private buffer: WebGLBuffer | null = null
  private transfer: WebGLBuffer | null = null // what is written to the buffer next
  private chunks = new Int16Array(0) // of each page, x and z modulo 2^16
  /** The chunks, for the shader. It is another texture when the buffer has grown. */
  readonly texture: { value: Texture | null } = { value: null }

  /** The buffer grows from this number of pages, a multiple of PAGES_PER_ROW. */
  constructor(
    private readonly gl: WebGL2RenderingContext,
    private readonly least: number,
  ) {}

  get bytes(): number {
    return this.pages.total * BYTES_PER_PAGE
  }

  /**
   * Writes the quads of a section into pages, in place of those that it had. Returns null if there are no quads, or the GPU has no
   * memory left for them.
   */
  put(chunkX: number, chunkZ: number, parts: readonly Uint32Array[], before: Pages | null): Pages | null {
    const quads = parts.reduce((sum, { length }) => sum + length, 0) / WORDS_PER_QUAD
    const count = Math.ceil(quads / PAGE_QUADS)
    const fits = before?.count === count
    if (before && !fits) this.pages.give(before)
    if (count === 0) return null
    const pages = fits ? before : this.take(count)
    if (!pages) return null
    const { gl } = this
    // Through a small buffer: Direct3D copies all of a buffer whose parts the page itself writes.
    this.transfer ??= gl.createBuffer()
    gl.bindBuffer(gl.COPY_READ_BUFFER, this.transfer)
    gl.bindBuffer(gl.COPY_WRITE_BUFFER, this.buffer)
    let at = pages.first * BYTES_PER_PAGE
    for (const words of parts) {
      if (words.length === 0) continue
      gl.bufferData(gl.COPY_READ_BUFFER, words, gl.STREAM_DRAW)
      gl.copyBufferSubData(gl.COPY_READ_BUFFER, gl.COPY_WRITE_BUFFER, 0, at, words.byteLength)
      at += words.byteLength
    }
    if (!fits) {
      for (let page = pages.first; page < pages.first + count; page++) {
        this.chunks[2 * page] = chunkX
        this.chunks[2 * page + 1] = chunkZ
      }
      this.texture.value?.change()
    }
    return pages
  }

  give(pages: Pages): void {
    this.pages.give(pages)
  }

  /** Draws with the words of the buffer, and another index. */
  geometry(index: Index): Geometry {
    return new Geometry({ words: this.buffer ? { words: { buffer: this.buffer, size: WORDS_PER_VERTEX } } : {}, index })
  }

  /** Frees everything; all pages are given. */
  clear(): void {
    this.texture.value?.dispose()
    this.texture.value = null
    this.gl.deleteBuffer(this.buffer)
    this.gl.deleteBuffer(this.transfer)
    this.buffer = this.transfer = null
    this.pages = new PageList()
    this.chunks = new Int16Array(0)
  }

  private take(count: number): Pages | null {
    const { total } = this.pages
    // with room for more, else for just these
    for (const wanted of [Math.max(this.least, total * GROWTH, total + count), total + count]) {
      const taken = this.pages.take(count)
      if (taken) return taken
      this.grow(Math.ceil(wanted / PAGES_PER_ROW) * PAGES_PER_ROW)
    }
    return this.pages.take(count)
  }

  /** Copies the pages to a buffer of more pages, which the GPU does by itself. Keeps the buffer if there is no memory for another. */
  private grow(total: number): void {
    const { gl } = this
    const buffer = gl.createBuffer()
    gl.bindBuffer(gl.COPY_WRITE_BUFFER, buffer)
    gl.bufferData(gl.COPY_WRITE_BUFFER, total * BYTES_PER_PAGE, gl.STATIC_DRAW)
    if (gl.getError() === gl.OUT_OF_MEMORY) {
      console.warn('the GPU has no memory for more land: a lower view distance needs less')
      gl.deleteBuffer(buffer)
      return
    }
    if (this.buffer) {
      gl.bindBuffer(gl.COPY_READ_BUFFER, this.buffer)
      gl.copyBufferSubData(gl.COPY_READ_BUFFER, gl.COPY_WRITE_BUFFER, 0, 0, this.bytes)
      gl.deleteBuffer(this.buffer)
    }
    this.buffer = buffer
    const chunks = new Int16Array(2 * total)
    chunks.set(this.chunks)
    this.chunks = chunks
    this.texture.value?.dispose()
    const level = { data: chunks, width: PAGES_PER_ROW, height: total / PAGES_PER_ROW }
    this.texture.value = new Texture([level], { format: 'rg16i', enlarge: 'nearest' })
    this.pages.grow(total)
  }
}

/** Quads of a buffer that are drawn with a material. */
export class Batch {
  readonly mesh: Mesh
  /** The quads that are drawn. */
  readonly index = new Index(new Uint32Array(1 << 12))
  private ranges: number[] = [] // from and to of each
  private written: number[] = [] // those in the index
  private shown: Texture | null = null

  constructor(
    private readonly buffer: QuadBuffer,
    material: Material,
    order: number,
  ) {
    this.mesh = new Mesh(new Geometry({}), material, order)
    this.mesh.visible = false
    this.index.count = 0
  }

  /** Adds quads to those that are drawn from the next finish on. */
  addRange(from: number, to: number): void {
    this.ranges.push(from, to)
  }

  /** Draws the ranges that were added since the last time, and no others. */
  finish(): void {
    const { ranges, written, index, mesh, buffer } = this
    if (ranges.length !== written.length || ranges.some((at, i) => at !== written[i])) {
      this.write()
      index.change()
    }
    this.written = ranges
    this.ranges = written
    this.ranges.length = 0
    mesh.visible = index.count > 0
    if (buffer.texture.value === this.shown) return
    this.shown = buffer.texture.value // the buffer is another one
    mesh.geometry.dispose()
    mesh.geometry = buffer.geometry(index)
  }

  dispose(): void {
    this.mesh.geometry.dispose()
    this.index.dispose()
  }

  private write(): void {
    const { ranges, index } = this
    let quads = 0
    for (let i = 0; i < ranges.length; i += 2) quads += (ranges[i + 1] ?? 0) - (ranges[i] ?? 0)
    index.count = quads * 6
    if (index.count > index.values.length) index.values = new Uint32Array(Math.ceil(index.count * 1.5))
    const { values } = index
    let at = 0
    for (let i = 0; i < ranges.length; i += 2) {
      const end = (ranges[i + 1] ?? 0) * 4
      for (let vertex = (ranges[i] ?? 0) * 4; vertex < end; vertex += 4, at += 6) {
        values[at] = vertex
        values[at + 1] = vertex + 1
        values[at + 2] = vertex + 2
        values[at + 3] = vertex
        values[at + 4] = vertex + 2
        values[at + 5] = vertex + 3
      }
    }
  }
}
