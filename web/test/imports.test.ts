// Imports between files have no cycles. eslint.config.js orders the folders, so a cycle could only be within one.

import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const SRC = resolve(import.meta.dirname, '../src')

/** Returns the files, without their extension, that each file imports. */
function readImports(): Map<string, string[]> {
  const imports = new Map<string, string[]>()
  for (const name of readdirSync(SRC, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue
    const file = join(SRC, name)
    const sources = [...readFileSync(file, 'utf8').matchAll(/^(?:import|export)\s[^']*'(\.[^']+)'/gm)]
    imports.set(
      file.slice(0, -'.ts'.length),
      sources.map(([, source = '']) => resolve(dirname(file), source)),
    )
  }
  return imports
}

/** Returns the files of a cycle; nothing if there is none. */
function findCycle(imports: Map<string, string[]>): string[] {
  const finished = new Set<string>()
  const visit = (file: string, path: string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (finished.has(file)) return []
    for (const next of imports.get(file) ?? []) {
      const cycle = visit(next, [...path, file])
      if (cycle.length > 0) return cycle
    }
    finished.add(file)
    return []
  }
  for (const file of imports.keys()) {
    const cycle = visit(file, [])
    if (cycle.length > 0) return cycle
  }
  return []
}

test('imports have no cycles', () => {
  const imports = readImports()
  expect(imports.get(join(SRC, 'game/start'))).toContain(join(SRC, 'game/game'))
  expect(findCycle(imports).map((file) => file.slice(SRC.length + 1))).toEqual([])
})

test('a cycle is found', () => {
  const imports = { a: ['b', 'c'], b: ['d'], c: ['d', 'e'], d: [], e: ['c'] }
  expect(findCycle(new Map(Object.entries(imports)))).toEqual(['c', 'e', 'c'])
})
