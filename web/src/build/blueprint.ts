// Copies as files, see "Blueprints" in docs/client.md: JSON with the ids of the blocks, and runs of equal blocks.

import { laterTexts } from '../text/later-texts'
import { AIR, KINDS, kindOf } from '../world/blocks'
import type { Copy } from './copy'
import { BULK_MAX_BLOCKS as MAX_BLOCKS, BULK_MAX_SIDE as MAX_SIDE } from './shapes'

const texts = laterTexts.blueprint
const FORMAT = 'voxeld blueprint'
const VERSION = 1
/** In bytes. The longest file that encodeBlueprint writes is shorter. */
export const MAX_FILE = 1 << 20

export function encodeBlueprint({ sides, blocks }: Copy): string {
  const palette = [...new Set(blocks)]
  const index = new Map(palette.map((block, i) => [block, i]))
  const runs: number[] = []
  for (let at = 0; at < blocks.length;) {
    const block = blocks[at]
    const from = at
    while (at < blocks.length && blocks[at] === block) at++
    runs.push(at - from, index.get(block ?? AIR) ?? 0)
  }
  return JSON.stringify({ format: FORMAT, version: VERSION, sides, palette, runs })
}

/** Returns the copy in a file. Throws an error that says what is wrong with it. */
export function decodeBlueprint(text: string): Copy {
  if (text.length > MAX_FILE) throw new Error(texts.tooLarge(MAX_FILE >> 10))
  const { format, version, sides, palette, runs } = objectIn(text)
  if (format !== FORMAT) throw new Error(texts.invalid)
  if (version !== VERSION) throw new Error(texts.newer)
  if (!isSides(sides)) throw new Error(texts.sides(MAX_SIDE))
  const volume = sides[0] * sides[1] * sides[2]
  if (volume > MAX_BLOCKS) throw new Error(texts.tooMany(MAX_BLOCKS))
  if (!isNumbers(palette) || palette.length > KINDS.length) throw new Error(texts.noPalette)
  const unknown = palette.find((block) => block !== AIR && !kindOf(block).placeable)
  if (unknown !== undefined) throw new Error(texts.unknownBlock(unknown))
  if (!isNumbers(runs) || runs.length % 2 !== 0) throw new Error(texts.noRuns)
  const blocks = new Uint16Array(volume)
  let at = 0
  for (let i = 0; i < runs.length; i += 2) {
    const length = runs[i] ?? 0
    const block = palette[runs[i + 1] ?? -1]
    if (length < 1 || at + length > volume || block === undefined) throw new Error(texts.badRun(i / 2))
    blocks.fill(block, at, at + length)
    at += length
  }
  if (at !== volume) throw new Error(texts.incomplete(at, volume))
  return { sides, blocks }
}

function objectIn(text: string): Partial<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // not JSON
  }
  throw new Error(texts.invalid)
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((v) => Number.isInteger(v) && v >= 0)
}

function isSides(value: unknown): value is [number, number, number] {
  return isNumbers(value) && value.length === 3 && value.every((side) => side >= 1 && side <= MAX_SIDE)
}
