// Finds the lamps near a place: keeps a list of the glowing blocks of each section, made when it is first asked for.

import { kindOf } from './blocks'
import { SIZE, chunkKey, chunkOf } from './coords'
import type { Chunk, World, WorldListener } from './world'

type Lamp = [x: number, y: number, z: number, glow: number]

export class Lamps implements WorldListener {
  private readonly lists = new Map<number, (Lamp[] | undefined)[]>() // by chunk and section

  constructor(private readonly world: World) {
    world.listen(this)
  }

  chunkChanged(chunk: Chunk): void {
    this.lists.delete(chunkKey(chunk.x, chunk.z))
  }

  chunkRemoved(chunk: Chunk): void {
    this.lists.delete(chunkKey(chunk.x, chunk.z))
  }

  blockChanged(x: number, y: number, z: number, before: number, after: number): void {
    if (kindOf(before).glow === 0 && kindOf(after).glow === 0) return
    const sections = this.lists.get(chunkKey(chunkOf(x), chunkOf(z)))
    if (sections) sections[y >> 5] = undefined
  }

  /**
   * Returns the highest glow that reaches a place from a lamp within reach of it in each direction, one level less per block,
   * ignoring obstacles.
   */
  glowAt(x: number, y: number, z: number, reach: number): number {
    let max = 0
    for (let cz = chunkOf(z - reach); cz <= chunkOf(z + reach); cz++) {
      for (let cx = chunkOf(x - reach); cx <= chunkOf(x + reach); cx++) {
        const chunk = this.world.chunk(cx, cz)
        if (!chunk) continue
        const top = Math.min(chunk.sections.length - 1, (y + reach) >> 5)
        for (let s = Math.max(0, (y - reach) >> 5); s <= top; s++) {
          for (const [lx, ly, lz, glow] of this.list(chunk, s)) {
            max = Math.max(max, glow - Math.abs(lx - x) - Math.abs(ly - y) - Math.abs(lz - z))
          }
        }
      }
    }
    return max
  }

  private list(chunk: Chunk, s: number): Lamp[] {
    const key = chunkKey(chunk.x, chunk.z)
    let sections = this.lists.get(key)
    if (!sections) this.lists.set(key, (sections = []))
    return (sections[s] ??= lampsOf(chunk, s))
  }
}

function lampsOf(chunk: Chunk, s: number): Lamp[] {
  const blocks = chunk.sections[s] ?? 0
  if (typeof blocks === 'number') return []
  const lamps: Lamp[] = []
  for (let i = 0; i < blocks.length; i++) {
    const { glow } = kindOf(blocks[i] ?? 0)
    if (glow > 0) {
      lamps.push([chunk.x * SIZE + (i & 31), s * SIZE + (i >> 10), chunk.z * SIZE + ((i >> 5) & 31), glow])
    }
  }
  return lamps
}
