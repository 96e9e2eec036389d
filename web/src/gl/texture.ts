// Textures: numbers, with their mipmaps or not, or a canvas. They are uploaded when they are used first, and after changes.

import type { Device } from './device'

export type Format = 'r8' | 'rg8' | 'rgba8' | 'rg32f' | 'rg16i'

/** The numbers of a level; of an array, those of all layers. */
export interface Level {
  readonly width: number
  readonly height: number
  readonly data: ArrayBufferView
}

export interface TextureOptions {
  format: Format
  /** How it is enlarged. */
  enlarge: 'nearest' | 'linear'
  /** Mipmaps are made of the first level, or the levels are given; without them it is shrunk as it is enlarged. */
  mipmaps?: 'made' | 'given'
  repeat?: boolean
  /** The samples of a slanted view. */
  anisotropy?: number
  /** The number of layers of an array of textures. */
  layers?: number
}

interface Uploaded {
  device: Device
  texture: WebGLTexture
}

export class Texture {
  private uploaded: Uploaded | null = null
  private changed = true

  constructor(
    private readonly source: readonly Level[] | HTMLCanvasElement,
    private readonly options: TextureOptions,
  ) {}

  /** Uploads the source again before the next use. Its size is the same. */
  change(): void {
    this.changed = true
  }

  bind(device: Device, unit: number): void {
    const { gl } = device
    const target = this.options.layers ? gl.TEXTURE_2D_ARRAY : gl.TEXTURE_2D
    if (this.uploaded?.device !== device) {
      this.uploaded = { device, texture: gl.createTexture() }
      device.bindTexture(unit, target, this.uploaded.texture)
      this.setUp(device, target)
      this.changed = true
    }
    device.bindTexture(unit, target, this.uploaded.texture)
    if (!this.changed) return
    this.changed = false
    gl.activeTexture(gl.TEXTURE0 + unit) // bindTexture leaves it if the texture is there
    this.upload(gl, target)
  }

  dispose(): void {
    this.uploaded?.device.deleteTexture(this.uploaded.texture)
    this.uploaded = null
  }

  private setUp(device: Device, target: number): void {
    const { gl } = device
    const { format, enlarge, mipmaps, repeat, anisotropy, layers } = this.options
    const nearest = enlarge === 'nearest' ? gl.NEAREST : gl.LINEAR
    gl.texParameteri(target, gl.TEXTURE_MAG_FILTER, nearest)
    gl.texParameteri(target, gl.TEXTURE_MIN_FILTER, mipmaps ? gl.LINEAR_MIPMAP_LINEAR : nearest)
    gl.texParameteri(target, gl.TEXTURE_WRAP_S, repeat ? gl.REPEAT : gl.CLAMP_TO_EDGE)
    gl.texParameteri(target, gl.TEXTURE_WRAP_T, repeat ? gl.REPEAT : gl.CLAMP_TO_EDGE)
    if (anisotropy) device.filterAnisotropically(target, anisotropy)
    const { width, height } = this.size
    const levels = mipmaps === 'made' ? 1 + Math.floor(Math.log2(Math.max(width, height))) : (this.levels?.length ?? 1)
    const { internal } = formatOf(gl, format)
    if (layers) gl.texStorage3D(target, levels, internal, width, height, layers)
    else gl.texStorage2D(target, levels, internal, width, height)
  }

  private upload(gl: WebGL2RenderingContext, target: number): void {
    const { format: name, mipmaps, layers } = this.options
    const { format, type } = formatOf(gl, name)
    gl.pixelStorei(gl.UNPACK_FLIP_Y_WEBGL, this.levels === null) // the first row of a canvas is its upper one
    if (this.levels) {
      this.levels.forEach(({ width, height, data }, level) => {
        if (layers) gl.texSubImage3D(target, level, 0, 0, 0, width, height, layers, format, type, data)
        else gl.texSubImage2D(target, level, 0, 0, width, height, format, type, data)
      })
    } else gl.texSubImage2D(target, 0, 0, 0, format, type, this.source as HTMLCanvasElement)
    if (mipmaps === 'made') gl.generateMipmap(target)
  }

  private get levels(): readonly Level[] | null {
    return Array.isArray(this.source) ? (this.source as readonly Level[]) : null
  }

  private get size(): { width: number; height: number } {
    return this.levels?.[0] ?? (this.source as HTMLCanvasElement)
  }
}

function formatOf(gl: WebGL2RenderingContext, format: Format): { internal: number; format: number; type: number } {
  switch (format) {
    case 'r8':
      return { internal: gl.R8, format: gl.RED, type: gl.UNSIGNED_BYTE }
    case 'rg8':
      return { internal: gl.RG8, format: gl.RG, type: gl.UNSIGNED_BYTE }
    case 'rgba8':
      return { internal: gl.RGBA8, format: gl.RGBA, type: gl.UNSIGNED_BYTE }
    case 'rg32f':
      return { internal: gl.RG32F, format: gl.RG, type: gl.FLOAT }
    case 'rg16i':
      return { internal: gl.RG16I, format: gl.RG_INTEGER, type: gl.SHORT }
  }
}
