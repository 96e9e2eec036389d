// Names of blocks in other languages: translations of those of the server's table.

import type { COLOURS, GROUPS, NAMES } from '../world/block-table'

type Split<List extends string, Found = never> = List extends `${infer First},${infer Rest}`
  ? Split<Rest, Found | First>
  : Found | List

type Entry = Split<typeof NAMES>
type Coloured = Extract<Entry, ` ${string}`>
export type Colour = (typeof COLOURS)[number]

export interface BlockNames {
  names: Record<Exclude<Entry, Coloured>, string>
  /** Of the blocks that have 16 colours. */
  coloured: Record<Coloured, (colour: Colour) => string>
  groups: Record<Exclude<(typeof GROUPS)[number], ''>, string>
}

/** Returns functions that translate the English names of blocks and of groups. */
export function translateBlocks({ names, coloured, groups }: BlockNames): {
  block: (name: string) => string
  group: (name: string) => string
} {
  const nameOf: Record<string, string | undefined> = names
  const groupOf: Record<string, string | undefined> = groups
  const kinds = Object.entries(coloured)
  return {
    block: (name) => {
      const kind = kinds.find(([ending]) => name.endsWith(ending))
      return nameOf[name] ?? kind?.[1](name.slice(0, -kind[0].length) as Colour) ?? name
    },
    group: (name) => groupOf[name] ?? name,
  }
}
