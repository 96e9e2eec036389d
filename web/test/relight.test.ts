// Properties of what the meshing workers keep up to date: after any edits it is the same as made anew.

import { describe, expect, test } from 'vitest'
import type { Land } from '../src/mesh/land'
import { LandMesher } from '../src/mesh/land-mesher'
import type { Meshed, MeshedSection } from '../src/mesh/messages'
import { hash } from '../src/world/hash'
import { ROWS } from '../src/world/block-rows'
import { kindOf } from '../src/world/blocks'
import { SECTION_BLOCKS, SIZE } from '../src/world/coords'
import { Chunk, type World } from '../src/world/world'
import { worldOf } from './columns'
import { landOf } from './land'

const SECTIONS = 2
const HEIGHT = SECTIONS * SIZE
const PALETTE = [0, 0, 0, 1, 5, 7, 18, 20, 21, 32] // air, stone, water, leaves, glass, lamp, ice, poppy

/** A rough land with water, caves and a few lamps. */
function rough(x: number, y: number, z: number): number {
  const top = 26 + Math.round(9 * Math.sin(x / 5) + 7 * Math.cos(z / 7))
  if (y > top) return y < 24 ? 5 : y === top + 6 && hash(x >> 2, z >> 2, 3) > 0.7 ? 7 : 0
  if (hash(x >> 2, (z >> 2) * 64 + (y >> 2), 4) > 0.6) return hash(x, z * 64 + y, 5) > 0.995 ? 20 : 0
  return 1
}

const WIDE = 3 * SIZE + 2 // with a margin that no light enters
const STEPS = [1, -1, WIDE, -WIDE, WIDE * WIDE, -WIDE * WIDE]

/** Computes the light of a world the slow way: raises every block until nothing changes. */
function lightOf(world: World): Uint8Array {
  const size = WIDE * WIDE * (HEIGHT + 2)
  const losses = new Uint8Array(size).fill(255)
  const sky = new Uint8Array(size)
  const glow = new Uint8Array(size)
  for (let x = -SIZE; x < 2 * SIZE; x++) {
    for (let z = -SIZE; z < 2 * SIZE; z++) {
      let level = 15
      for (let y = HEIGHT - 1; y >= 0; y--) {
        const block = world.get(x, y, z)
        const kind = kindOf(block)
        const dims = (ROWS[block]?.light ?? 0) >> 4
        level = kind.opaque ? 0 : Math.max(0, level - dims)
        sky[indexOf(x, y, z)] = level
        glow[indexOf(x, y, z)] = kind.glow
        losses[indexOf(x, y, z)] = kind.opaque ? 255 : 1 + dims
      }
    }
  }
  for (const levels of [sky, glow]) {
    for (let changed = true; changed;) {
      changed = false
      for (let i = 0; i < size; i++) {
        const loss = losses[i]!
        if (loss === 255) continue
        for (const step of STEPS) {
          if (levels[i + step]! - loss <= levels[i]!) continue
          levels[i] = levels[i + step]! - loss
          changed = true
        }
      }
    }
  }
  return sky.map((level, i) => (level << 4) | glow[i]!)
}

function indexOf(x: number, y: number, z: number): number {
  return ((y + 1) * WIDE + z + SIZE + 1) * WIDE + x + SIZE + 1
}

/** Returns the first block whose light differs from the slow computation. */
function wrongLight(land: Land, world: World): string | null {
  const expected = lightOf(world)
  for (const { x, z } of world.all()) {
    const chunk = land.chunk(x, z)!
    for (let i = 0; i < SECTIONS * SECTION_BLOCKS; i++) {
      const at = [x * SIZE + (i & 31), i >> 10, z * SIZE + ((i >> 5) & 31)] as const
      const want = expected[indexOf(...at)]
      if (chunk.lightAt(i) !== want) return `${at.join()}: ${chunk.lightAt(i)}, not ${want}`
    }
  }
  return null
}

/** The meshes that a client would show. */
class Shown {
  readonly meshes = new Map<string, MeshedSection>()
  readonly mesher = new LandMesher()
  private job = 1

  constructor(private readonly world: World) {
    for (const chunk of world.all()) this.put(chunk)
    this.meshAll()
  }

  put({ x, z, sections }: Chunk): void {
    this.mesher.process({ type: 'put', x, z, version: 1, own: true, sections })
  }

  meshAll(): void {
    for (const { x, z } of this.world.all()) {
      this.show(this.mesher.process({ type: 'mesh', job: this.job++, x, z, sections: 2 ** SECTIONS - 1, near: true }))
    }
  }

  /** Returns the number of sections meshed again. */
  edit(x: number, y: number, z: number, block: number): number {
    this.world.set(x, y, z, block)
    const answer = this.mesher.process({ type: 'edit', job: this.job++, edits: [x, y, z, block] })
    this.show(answer)
    return answer?.sections.length ?? 0
  }

  private show(answer: Meshed | null): void {
    for (const section of answer?.sections ?? []) {
      this.meshes.set(`${section.x},${section.z},${section.section}`, section)
    }
  }
}

function expectMeshedAnew(shown: Shown, world: World): void {
  const anew = new Shown(world)
  expect([...shown.meshes.keys()].sort()).toEqual([...anew.meshes.keys()].sort())
  for (const [key, { mesh }] of anew.meshes) {
    for (const pass of ['opaque', 'cutout', 'water', 'thicket'] as const) {
      const [a, b] = [shown.meshes.get(key)?.mesh[pass], mesh[pass]]
      expect(a && Buffer.from(a.buffer).equals(Buffer.from(b.buffer)), `${key} ${pass}`).toBe(true)
    }
  }
}

function randomEdit(i: number, seed: number): [x: number, y: number, z: number, block: number] {
  const at = (n: number, from: number, size: number) => from + Math.floor(hash(i, n, seed) * size)
  // most of them close together, some at the borders of chunks and sections
  const near = hash(i, 9, seed) < 0.7
  const x = near ? at(0, 26, 12) : at(0, -SIZE, 3 * SIZE)
  const z = near ? at(1, 26, 12) : at(1, -SIZE, 3 * SIZE)
  return [x, near ? at(2, 24, 14) : at(2, 0, HEIGHT), z, PALETTE[at(3, 0, PALETTE.length)]!]
}

describe('the land of a meshing worker', () => {
  test('new chunks get the light of the whole land, in any order', () => {
    const world = worldOf(SECTIONS, rough)
    expect(wrongLight(landOf(world), world)).toBe(null)
  })

  test.each([1, 2, 3])('after random edits, light and meshes are those of a land made anew (%i)', (seed) => {
    const world = worldOf(SECTIONS, rough)
    const shown = new Shown(world)
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 60; i++) shown.edit(...randomEdit(100 * round + i, seed))
      expectMeshedAnew(shown, world)
    }
    const { land } = shown.mesher
    expect(wrongLight(land, world)).toBe(null)
  })

  test('chunks that are removed take their light with them; chunks that are replaced bring theirs', () => {
    const world = worldOf(SECTIONS, rough)
    for (const [x, y, z] of [
      [31, 40, 3],
      [0, 20, 31],
      [-1, 50, 16],
    ] as const) {
      world.set(x, y, z, 20)
    }
    const shown = new Shown(world)
    shown.mesher.process({ type: 'remove', x: 0, z: 0 })
    const changed = new Chunk(0, 0, [0, 0])
    for (let x = 0; x < SIZE; x++) for (let z = 4; z < SIZE; z++) changed.set(x, 30, z, 1)
    world.put(changed)
    shown.put(changed)
    expect(wrongLight(shown.mesher.land, world)).toBe(null)
    const again = new Chunk(0, 0, [1, 0])
    world.put(again)
    shown.put(again)
    expect(wrongLight(shown.mesher.land, world)).toBe(null)
    shown.meshAll()
    expectMeshedAnew(shown, world)
  })

  test('an edit within a section meshes that section', () => {
    const world = worldOf(SECTIONS, (_x, y) => (y < 40 ? 1 : 0))
    const shown = new Shown(world)
    expect(shown.edit(16, 40, 16, 1)).toBe(1)
    expect(shown.edit(16, 40, 16, 0)).toBe(1)
    expect(shown.edit(16, 20, 16, 0)).toBe(1) // a cave without light
    expect(shown.edit(0, 40, 16, 1)).toBe(2) // at the border of a chunk
    expect(shown.edit(0, 10, 0, 1)).toBe(0) // it is the same
  })

  test('an edit meshes again as far as its light reaches', () => {
    const world = worldOf(SECTIONS, (_x, y) => (y < 20 ? 1 : 0))
    const shown = new Shown(world)
    expect(shown.edit(30, 20, 16, 20)).toBe(2) // a lamp beside another chunk
    expect(shown.edit(2, 60, 2, 1)).toBe(2) // a block in the air, and its shadow on the ground
  })
})
