import { expect, test } from 'vitest'
import { Ghost } from '../src/render/ghost'
import { AIR, kindOf } from '../src/world/blocks'

const named = (name: string) => Array.from({ length: 400 }).findIndex((_, block) => kindOf(block).name === name)
const STONE = named('Stone')

function show(...blocks: [x: number, block: number][]) {
  const ghost = new Ghost()
  ghost.show(blocks.map(([x, block]) => ({ x, y: 5, z: 0, block })))
  return ghost.mesh.geometry
}

test('ghosts have the shapes of their blocks', () => {
  const slab = show([0, named('Stone slab')])
  expect(slab.instances).toBe(6)
  expect([...slab.attributes.size!.values.slice(0, 3)]).toEqual([1, 0.5, 1])
  expect(show([0, named('Stone stairs')]).instances).toBe(12)
  expect(show([0, STONE]).instances).toBe(6)
  expect(show([0, AIR]).instances).toBe(6)
  expect([...show([0, named('Poppy')]).attributes.size!.values.slice(0, 3)].every((size) => size > 0)).toBe(true)
})

test('faces between whole blocks are left out, and no others', () => {
  expect(show([0, STONE], [1, STONE]).instances).toBe(10)
  expect(show([0, STONE], [1, named('Stone slab')]).instances).toBe(12)
})
