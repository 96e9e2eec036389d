// Draws the chunks that are loaded from above, block by block.

import { AIR } from '../world/blocks'
import { SIZE, chunkKey, chunkOf } from '../world/coords'
import type { Chunk, World } from '../world/world'
import { across, down, type Frame } from './frame'
import { drawPoints, lightOf } from './shading'

const FROM_SCALE = 0.4 // pixels of a block
const STEP = 0.4 // blocks that a step of one counts for: land rises in steps
const AT_ONCE = 8 // chunks, which take a millisecond each

export class LoadedLand {
  private readonly images = new Map<number, HTMLCanvasElement>()

  constructor(private readonly world: World) {}

  /** Forgets the picture of a chunk that has changed. */
  forget(x: number, z: number): void {
    this.images.delete(chunkKey(x, z))
  }

  /** Draws the chunks in a frame, unless they are tiny. Returns false if some are left for another time. */
  draw(context: CanvasRenderingContext2D, frame: Frame): boolean {
    if (frame.scale < FROM_SCALE) return true
    let left = AT_ONCE
    for (let z = chunkOf(frame.z); z * SIZE < frame.z + frame.height / frame.scale; z++) {
      for (let x = chunkOf(frame.x); x * SIZE < frame.x + frame.width / frame.scale; x++) {
        const chunk = this.world.chunk(x, z)
        if (!chunk) continue
        let image = this.images.get(chunkKey(x, z))
        if (!image) {
          if (left === 0) continue
          left--
          this.images.set(chunkKey(x, z), (image = drawChunk(chunk)))
        }
        const [west, north] = [Math.round(across(frame, x * SIZE)), Math.round(down(frame, z * SIZE))]
        const [east, south] = [Math.round(across(frame, (x + 1) * SIZE)), Math.round(down(frame, (z + 1) * SIZE))]
        context.drawImage(image, west, north, east - west, south - north)
      }
    }
    return left > 0
  }

  /** Returns the height of the highest block at a place, or null if that is not loaded. */
  heightAt(x: number, z: number): number | null {
    const chunk = this.world.chunk(chunkOf(x), chunkOf(z))
    return chunk ? topOf(chunk, x - chunk.x * SIZE, z - chunk.z * SIZE).height : null
  }
}

function drawChunk(chunk: Chunk): HTMLCanvasElement {
  const tops = Array.from({ length: SIZE * SIZE }, (_, i) => topOf(chunk, i % SIZE, i >> 5))
  const heightAt = (x: number, z: number) => tops[z * SIZE + x]?.height ?? 0
  return drawPoints(SIZE, (x, z) => {
    const { block, height } = tops[z * SIZE + x] ?? { block: AIR, height: 0 }
    // the last row and column have no neighbour here: they are lit like those before
    const [lx, lz] = [Math.min(x, SIZE - 2), Math.min(z, SIZE - 2)]
    const east = heightAt(lx + 1, z) - heightAt(lx, z)
    const south = heightAt(x, lz + 1) - heightAt(x, lz)
    return { block, light: lightOf(height, east * STEP, south * STEP) }
  })
}

function topOf(chunk: Chunk, x: number, z: number): { height: number; block: number } {
  for (let height = chunk.sections.length * SIZE - 1; height >= 0; height--) {
    if (chunk.sections[height >> 5] === AIR) {
      height &= ~31 // nothing but air
      continue
    }
    const block = chunk.get(x, height, z)
    if (block !== AIR) return { height, block }
  }
  return { height: 0, block: AIR }
}
