import { describe, expect, test } from 'vitest'
import { withPlace } from '../src/net/command'
import { isName } from '../src/net/protocol'
import { randomName } from '../src/settings/random-name'

test('random names are valid, and many', () => {
  const names = Array.from({ length: 2000 }, () => randomName())
  expect(names.filter((name) => !isName(name) || !/^[A-Z][a-z]+[A-Z][a-z]+\d{4}$/.test(name))).toEqual([])
  expect(new Set(names).size).toBeGreaterThan(1950)
  expect([randomName(() => 0), randomName(() => 0.999)]).toEqual(['AmberBadger1000', 'WiseWalrus9991'])
})

describe('a command with a place', () => {
  const commands = [
    { name: 'setspawn', usage: '[X Y Z]', help: '' },
    { name: 'setwarp', usage: 'NAME [X Y Z]', help: '' },
    { name: 'say', usage: 'TEXT', help: '' },
  ]
  const at = { x: -0.5, y: 63.9999, z: 7.2 }
  test.each([
    ['setspawn', 'setspawn -1 64 7'],
    ['setspawn 1 2 3', 'setspawn 1 2 3'],
    ['setwarp', 'setwarp'],
    ['setwarp  market', 'setwarp market -1 64 7'],
    ['setwarp market 1 2 3', 'setwarp market 1 2 3'],
    ['say setspawn', 'say setspawn'],
    ['nothing', 'nothing'],
  ])('%s', (line, want) => expect(withPlace(line, commands, at)).toBe(want))
})
