// A camera with perspective. It is at a place relative to the render origin, which meshes are moved by when they are drawn: the GPU computes
// with single precision, which is not enough for places far from the centre of the world.

import {
  identity,
  inverse,
  multiply,
  perspective,
  product,
  rotationX,
  rotationY,
  translation,
  withoutTranslation,
  type Matrix,
} from './matrix'
import type { Vector } from './vector'

export interface Sphere {
  middle: Vector
  radius: number
}

export class PerspectiveCamera {
  aspect = 1
  /** The render origin, in world blocks. */
  originX = 0
  originZ = 0
  /** Relative to the render origin. */
  readonly position: Vector = [0, 0, 0]
  projection: Matrix = identity()
  /** From the world, relative to the render origin, to the camera. */
  view: Matrix = identity()
  private readonly planes = new Float64Array(24) // of the frustum: four numbers each, inwards

  constructor(
    public fieldOfView: number, // degrees
    private readonly near: number,
    private readonly far: number,
  ) {}

  /** Places the camera, relative to the render origin; at yaw and pitch 0 it looks along −z. */
  place(x: number, y: number, z: number, yaw: number, pitch: number): void {
    this.position.splice(0, 3, x, y, z)
    this.view = product(rotationX(-pitch), rotationY(-yaw), translation(-x, -y, -z))
    this.update()
  }

  /** Updates what follows from the field of view and the aspect. */
  update(): void {
    this.projection = perspective(this.fieldOfView, this.aspect, this.near, this.far)
    const m = multiply(this.projection, this.view)
    for (let plane = 0; plane < 6; plane++) {
      const axis = plane >> 1
      const sign = plane & 1 ? -1 : 1
      const at = (column: number) => (m[4 * column + 3] ?? 0) + sign * (m[4 * column + axis] ?? 0)
      const length = Math.hypot(at(0), at(1), at(2))
      for (let column = 0; column < 4; column++) this.planes[4 * plane + column] = at(column) / length
    }
  }

  /** Projects positions that are relative to the camera. */
  get projectionOfRelative(): Matrix {
    return multiply(this.projection, withoutTranslation(this.view))
  }

  /** From clip space to directions in the world. */
  get directions(): Matrix {
    return inverse(this.projectionOfRelative)
  }

  /** Reports whether a part of a sphere, which is relative to the render origin, may be in the picture. */
  sees(x: number, y: number, z: number, radius: number): boolean {
    const { planes } = this
    for (let i = 0; i < 24; i += 4) {
      const distance = (planes[i] ?? 0) * x + (planes[i + 1] ?? 0) * y + (planes[i + 2] ?? 0) * z + (planes[i + 3] ?? 0)
      if (distance < -radius) return false
    }
    return true
  }

  /** Returns how far a place, which is relative to the render origin, is ahead of the camera. */
  depth(x: number, y: number, z: number): number {
    const { view } = this
    return -((view[2] ?? 0) * x + (view[6] ?? 0) * y + (view[10] ?? 0) * z + (view[14] ?? 0))
  }
}
