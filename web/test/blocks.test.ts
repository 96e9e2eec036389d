import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { KINDS } from '../src/world/blocks'

interface Row {
  name: string
  solid: boolean
  opaque: boolean
  placeable: boolean
  breakable: boolean
  plant: boolean
}

// The server's table, written by package chunk's test (go test ./chunk -run TestBlockTable -update).
const rows = JSON.parse(readFileSync(new URL('../../chunk/testdata/blocks.json', import.meta.url), 'utf8')) as Row[]

test('the client has the same blocks as the server, with the same ids', () => {
  const ours = KINDS.map((kind): Row => {
    const { solid, opaque, placeable, breakable } = kind
    const name = kind.name.toLowerCase().replaceAll(' ', '_')
    return { name, solid, opaque, placeable, breakable, plant: kind.shape === 'cross' }
  })
  expect(ours).toEqual(rows)
})
