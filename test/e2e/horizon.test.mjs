// The horizon, in a real browser on two nodes: the land 2 km away and what it costs, and a tower that somebody builds on the other node, a
// kilometre away. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon, HILLS } from './daemon.mjs'
import { buildTower } from './mason.mjs'
import { Player, bytesOf } from './player.mjs'

const BRICK = 19
const FLOORS = 40
const TOWER_MS = 10_000
const PATIENCE_MS = 120_000

const nodes = []
let ada
let bytes = 0 // of surface tiles and their hashes
let spawn

before(async () => {
  nodes.push(await Daemon.start(null, [], HILLS))
  nodes.push(await Daemon.start(nodes[0]))
})

after(async () => {
  await ada?.close()
  for (const node of nodes) await node.remove()
})

/** Waits until all land is there, and the fog has retreated. */
function untilWhole() {
  return ada.until(() => {
    const { horizon, meshBacklog } = window.__voxeld.state()
    return meshBacklog === 0 && horizon.wanted > 0 && horizon.there === horizon.wanted && horizon.reach > 2000
  })
}

function lookAlong(dx, dy, dz) {
  return ada.page.evaluate(
    ([dx, dy, dz]) => {
      const { x, y, z } = window.__voxeld.state()
      window.__voxeld.lookAt(Math.floor(x + dx), Math.floor(y + dy), Math.floor(z + dz))
    },
    [dx, dy, dz],
  )
}

/** Returns what was drawn of the horizon, after two frames. */
async function drawn() {
  const { frames } = await ada.state()
  await ada.until((frames) => window.__voxeld.state().frames > frames + 2, frames)
  return (await ada.state()).horizon
}

test('land at 2 km is there, for few bytes, calls and triangles', async () => {
  ada = await Player.open(nodes[0].url, 'ada', { settings: { view: 3, renderScale: 0.5, horizon: true } })
  ada.page.on('requestfinished', async (request) => {
    if (!new URL(request.url()).pathname.startsWith('/surface')) return
    const more = await bytesOf(request)
    bytes += more
  })
  await ada.play()
  spawn = await ada.state()
  await ada.register()
  await ada.say(`/owner ${await nodes[0].operate('owner')}`) // ada's own node knows it at once
  await ada.untilChat('You own this world now')
  await ada.page.keyboard.press('KeyF')
  await ada.say(`/tp ${Math.floor(spawn.x) + 1000} 120 ${Math.floor(spawn.z)}`)
  await ada.until((x) => window.__voxeld.state().x > x + 900, spawn.x)
  bytes = 0
  await untilWhole()
  let most = { calls: 0, triangles: 0 }
  for (const [dx, dz] of [
    [100, 0],
    [0, 100],
    [-100, 0],
    [0, -100],
  ]) {
    await lookAlong(dx, -12, dz)
    const { calls, triangles } = await drawn()
    most = { calls: Math.max(calls, most.calls), triangles: Math.max(triangles, most.triangles) }
  }
  const { horizon } = await ada.state()
  console.log(
    `horizon: ${bytes} bytes, ${horizon.wanted} tiles, at most ${most.calls} calls, ${most.triangles} triangles`,
  )
  assert.ok(bytes > 20_000 && bytes <= 400_000, `${bytes} bytes`)
  assert.ok(most.calls > 5 && most.calls <= 60, `${most.calls} draw calls`)
  assert.ok(most.triangles > 5_000 && most.triangles <= 150_000, `${most.triangles} triangles`)
  assert.ok((await ada.coloursOf('horizon')) > 40)
})

test('a tower that is built on another node stands on the horizon within 10 s', async () => {
  await lookAlong(-1000, -60, 0)
  assert.equal((await drawn()).built, 0)
  const top = await buildTower(ada.page, nodes[1].url, BRICK, FLOORS)
  const from = Date.now()
  const deadline = from + PATIENCE_MS
  // the squares that are drawn are as high as the tower
  while ((await ada.state()).horizon.highest < top.y && Date.now() < deadline) await drawn()
  const took = Date.now() - from
  const { built, highest } = (await ada.state()).horizon
  assert.deepEqual({ built, highest }, { built: 1, highest: top.y })
  console.log(`horizon: the tower was there after ${took} ms`)
  assert.ok(took <= TOWER_MS, `${took} ms`)
  await ada.page.evaluate(({ x, y, z }) => window.__voxeld.lookAt(x, y - 10, z), top)
  await drawn()
  await ada.picture('horizon-tower')
})

test('the page had no problems', () => assert.deepEqual(ada.troubles, []))
