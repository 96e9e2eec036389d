// What cannot be seen is not drawn, and nothing else is missing.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon, HILLS } from './daemon.mjs'
import { Player } from './player.mjs'

let daemon, player

before(async () => {
  daemon = await Daemon.start(null, [], HILLS)
  player = await Player.open(`${daemon.url}?bench&view=3&only=culling`, 'bench', {
    device: { deviceScaleFactor: 1 },
    frameMs: 0,
  })
})

after(async () => {
  await player?.close()
  await daemon?.remove()
})

test('frames are the same with and without culling: at spawn, on a hill, high above, in a cave', async () => {
  await player.until(() => window.__bench?.done)
  const { rows, error, culling } = await player.page.evaluate(() => window.__bench)
  await player.picture('culling')
  assert.equal(error, '')
  assert.deepEqual(player.troubles, [])
  for (const row of rows) console.log(row.join(': '))
  assert.equal(culling.frames, 32)
  assert.equal(culling.holes, 0)
  assert.ok(culling.triangles < 0.6 * culling.without, `${culling.triangles} of ${culling.without} triangles`)
})
