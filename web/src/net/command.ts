// Completes commands with what the player sees and the server does not sign for them: the place where they stand.

import type { CommandHelp } from './protocol'

const PLACE = '[X Y Z]'

/** Returns a command with the block that the player stands on, if the command ends with a place and the line does not. */
export function withPlace(line: string, commands: CommandHelp[], at: { x: number; y: number; z: number }): string {
  const [name, ...args] = line.trim().split(/\s+/)
  const usage = commands.find((c) => c.name === name)?.usage ?? ''
  const before = usage.replace(PLACE, '').trim()
  if (!usage.endsWith(PLACE) || args.length !== (before ? before.split(' ').length : 0)) return line
  return [name, ...args, Math.floor(at.x), Math.floor(at.y + 0.001), Math.floor(at.z)].join(' ')
}
