// The commands of the building tools, which players write in the chat after two slashes: //fill stone.

import type { Vector } from '../player/ray'

export type BuildCommand =
  | { name: 'pos1' | 'pos2'; at: Vector | null }
  | { name: 'fill'; block: number }
  | { name: 'replace'; from: number; to: number }
  | { name: 'sphere' | 'shell'; block: number; radius: number }
  | { name: 'flip'; axis: 0 | 1 | 2 }
  | { name: 'copy' | 'cut' | 'paste' | 'turn' | 'undo' | 'redo' | 'stop' }

const MAX_RADIUS = 64

/**
 * Parses a command without its slashes. Returns null if it is none, and an unknown block's name as a text. The names of blocks may have
 * underscores in place of spaces; blockNamed returns -1 for others.
 */
export function parseBuildCommand(line: string, blockNamed: (name: string) => number): BuildCommand | string | null {
  const [name = '', ...args] = line.trim().toLowerCase().split(/\s+/)
  const [a = '', b = ''] = args
  const blocks = (...names: string[]): number[] | string => {
    const ids = names.map((text) => blockNamed(text.replaceAll('_', ' ')))
    return names[ids.indexOf(-1)] ?? ids
  }
  const numbers = args.map(Number)
  switch (name) {
    case 'pos1':
    case 'pos2': {
      const [x = 0, y = 0, z = 0] = numbers
      if (args.length === 0) return { name, at: null }
      return args.length === 3 && numbers.every(Number.isInteger) ? { name, at: [x, y, z] } : null
    }
    case 'fill':
    case 'replace': {
      if (args.length !== (name === 'fill' ? 1 : 2)) return null
      const found = blocks(...args)
      if (typeof found === 'string') return found
      const [from = 0, to = 0] = found
      return name === 'fill' ? { name, block: from } : { name, from, to }
    }
    case 'sphere':
    case 'shell': {
      const radius = Number(b)
      if (args.length !== 2 || !Number.isInteger(radius) || radius < 1 || radius > MAX_RADIUS) return null
      const found = blocks(a)
      return typeof found === 'string' ? found : { name, block: found[0] ?? 0, radius }
    }
    case 'flip': {
      const axis = a === 'x' ? 0 : a === 'y' ? 1 : a === 'z' ? 2 : null
      return args.length === 1 && axis !== null ? { name, axis } : null
    }
    case 'copy':
    case 'cut':
    case 'paste':
    case 'turn':
    case 'undo':
    case 'redo':
    case 'stop':
      return args.length === 0 ? { name } : null
    default:
      return null
  }
}
