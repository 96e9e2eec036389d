// Where land is on a canvas: north is up. All pixels are those of CSS.

import { CELLS, LEVELS, SQUARE } from '../horizon/tile'
import { sideOf, type TileKey } from '../horizon/quadtree'

/** The most blocks along the longer side of a canvas: several kilometres. */
export const MAX_SPAN = 7000
/** The fewest blocks along the shorter side: two chunks. */
export const MIN_SPAN = 64
/** More tiles than these are not shown at once: wider ones are. */
export const MAX_TILES = 72

export interface Size {
  width: number
  height: number
}

/** A place on a canvas or on the land. */
export interface Point {
  x: number
  y: number
}

/** Land on a canvas: the block at its left and top, and the pixels of a block. */
export interface Frame extends Size {
  readonly x: number
  readonly z: number
  readonly scale: number
}

export const across = (frame: Frame, x: number): number => (x - frame.x) * frame.scale
export const down = (frame: Frame, z: number): number => (z - frame.z) * frame.scale

/** The part of the land that a player looks at, by its middle. */
export class MapView {
  private size: Size = { width: 1000, height: 1000 } // until it is known
  private pixels = 1 // of a block

  constructor(
    public x = 0,
    public z = 0,
  ) {}

  get scale(): number {
    return this.pixels
  }

  get frame(): Frame {
    const { x, z, scale, size } = this
    return { x: x - size.width / 2 / scale, z: z - size.height / 2 / scale, scale, ...size }
  }

  resize(size: Size): void {
    this.size = { width: Math.max(1, size.width), height: Math.max(1, size.height) }
    this.setScale(this.pixels)
  }

  setScale(scale: number): void {
    const { width, height } = this.size
    const least = Math.max(width, height) / MAX_SPAN
    const most = Math.max(least, Math.min(width, height) / MIN_SPAN)
    this.pixels = Math.min(Math.max(scale, least), most)
  }

  moveTo(x: number, z: number): void {
    const limit = 2 ** 29
    this.x = Math.min(Math.max(x, -limit), limit)
    this.z = Math.min(Math.max(z, -limit), limit)
  }

  /** Moves the land by some pixels. */
  pan(right: number, down: number): void {
    this.moveTo(this.x - right / this.scale, this.z - down / this.scale)
  }

  /** Makes the land so many times as large; the block at a place of the canvas stays there. */
  zoom(factor: number, at: Point = { x: this.size.width / 2, y: this.size.height / 2 }): void {
    const before = this.at(at)
    this.setScale(this.scale * factor)
    const after = this.at(at)
    this.moveTo(this.x + before.x - after.x, this.z + before.z - after.z)
  }

  /** Returns where a place of the canvas is on the land. */
  at({ x, y }: Point): { x: number; z: number } {
    const { frame } = this
    return { x: frame.x + x / frame.scale, z: frame.z + y / frame.scale }
  }
}

/** Returns the tiles to show in a frame, those in its middle first: the finest of which there are not too many. */
export function tilesIn(frame: Frame): TileKey[] {
  for (let level = 0; ; level++) {
    const side = sideOf(level)
    const [west, north] = [Math.floor(frame.x / side), Math.floor(frame.z / side)]
    const columns = Math.ceil((frame.x + frame.width / frame.scale) / side) - west
    const rows = Math.ceil((frame.z + frame.height / frame.scale) / side) - north
    if (columns * rows > MAX_TILES && level < LEVELS - 1) continue
    const tiles = Array.from({ length: columns * rows }, (_, i): TileKey => {
      return { level, x: west + (i % columns), z: north + Math.floor(i / columns) }
    })
    const [mx, mz] = [frame.x + frame.width / 2 / frame.scale, frame.z + frame.height / 2 / frame.scale]
    const away = ({ x, z }: TileKey) => Math.hypot((x + 0.5) * side - mx, (z + 0.5) * side - mz)
    return tiles.sort((a, b) => away(a) - away(b)).slice(0, MAX_TILES)
  }
}

/** Returns the index of the point of a tile that a block is at. */
export function pointOf({ level, x, z }: TileKey, bx: number, bz: number): number {
  const step = SQUARE << level
  const column = Math.floor((bx - x * sideOf(level)) / step)
  const row = Math.floor((bz - z * sideOf(level)) / step)
  return row * (CELLS + 1) + column
}
