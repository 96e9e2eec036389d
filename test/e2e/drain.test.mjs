// A node is drained while a real browser is connected to it. The player continues at another node, on the same page, and
// an edit made during the handoff is kept. Three nodes: land can be changed while a majority of its replicas is up. Run as
// browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const AIR = 0

const nodes = [] // those that are running
let drained // the first node
let ada
const broken = [] // positions of broken blocks

before(async () => {
  nodes.push(await Daemon.start())
  for (let i = 0; i < 2; i++) nodes.push(await Daemon.start(nodes[0]))
})

after(async () => {
  await ada?.close()
  for (const node of new Set([...nodes, drained])) await node?.remove()
})

/** Waits until every region has a replica on every node. */
async function untilReplicated() {
  for (let tries = 0; tries < 300; tries++) {
    const regions = (await Promise.all(nodes.map((node) => node.ask('regions')))).flat()
    if (regions.length > 0 && regions.every(({ members, voters }) => members.length === 3 && voters === 3)) return
    await pause(100)
  }
  throw new Error('not every region has three replicas')
}

/** Returns the node that serves the player. */
async function nodeOf(player) {
  const { gateway } = await player.state()
  for (const node of nodes) if ((await node.ask('status')).peer === gateway) return node
  throw new Error(`no node is ${gateway}`)
}

/** Breaks a block at the moment when the page is between two nodes, and records what the player sees. */
function watch(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector('#view')
    const seen = { chunks: Infinity, screens: [], banner: false, edited: null }
    window.__watch = seen
    window.__samePage = true
    const look = () => {
      const { connected, chunksLoaded, screen } = window.__voxeld.state()
      seen.chunks = Math.min(seen.chunks, chunksLoaded)
      if (!seen.screens.includes(screen)) seen.screens.push(screen)
      if (!document.querySelector('.connection.banner').classList.contains('hidden')) seen.banner = true
      const aim = window.__voxeld.aim() // ada may have moved since the last aim
      if (connected || seen.edited || !aim) return
      seen.edited = [aim.x, aim.y, aim.z]
      canvas.dispatchEvent(new MouseEvent('mousedown', { button: 0, bubbles: true }))
      canvas.dispatchEvent(new MouseEvent('mouseup', { button: 0, bubbles: true }))
    }
    // the client closes a socket and opens the next one synchronously, so the moment is caught in the constructor
    const Real = window.WebSocket
    window.WebSocket = class extends Real {
      constructor(...args) {
        super(...args)
        queueMicrotask(look)
      }
    }
    const looking = window.setInterval(look, 20)
    window.__stopWatching = () => window.clearInterval(looking)
  })
}

test('a player joins, and the land around them has three replicas', async () => {
  ada = await Player.open(nodes[0].url, 'ada')
  ada.tilesFrom = nodes.map(({ url }) => url)
  await ada.play()
  broken.push(await ada.aimAtGround())
  await ada.click('left')
  await untilReplicated()
})

test('the node is drained: the player continues at another one, on the same page', async () => {
  await ada.aimAtGround(broken)
  const { gateway, chunksLoaded, x, z } = await ada.state()
  await watch(ada.page)
  drained = nodes.shift()
  const answer = await drained.drain()
  assert.equal(answer.followed, 1, JSON.stringify(answer))
  await ada.until(
    (gateway) => window.__voxeld.state().connected && window.__voxeld.state().gateway !== gateway,
    gateway,
  )
  const now = await ada.state()
  await nodeOf(ada)
  assert.ok(Math.hypot(now.x - x, now.z - z) < 1.5, `was at ${x}, ${z}, is at ${now.x}, ${now.z}`)
  const seen = await ada.page.evaluate(() => {
    window.__stopWatching()
    return { ...window.__watch, samePage: window.__samePage }
  })
  assert.ok(seen.samePage, 'the page was reloaded')
  assert.ok(seen.edited, 'no edit was made during the handoff')
  broken.push(seen.edited)
  assert.deepEqual(seen.screens, ['play'])
  assert.ok(!seen.banner, 'the player saw the banner of a lost connection')
  assert.ok(seen.chunks >= chunksLoaded * 0.8, `${seen.chunks} of ${chunksLoaded} chunks were left during the handoff`)
  await ada.picture('7-moved')
})

test('edits made before and during the handoff are committed, and new ones work', async () => {
  await ada.until(() => window.__voxeld.state().pendingEdits === 0)
  assert.equal((await ada.state()).acknowledgedEdits, broken.length)
  for (const at of broken) assert.equal(await ada.blockAt(at), AIR, `${JSON.stringify(broken)} at ${at}`)
  broken.push(await ada.aimAtGround(broken))
  await ada.click('left')
})

test('the first node returns, the second one is drained: the player is still on the same page', async () => {
  await drained.run()
  nodes.push(drained)
  await untilReplicated()
  const node = await nodeOf(ada)
  const { gateway } = await ada.state()
  await node.drain()
  await ada.until(
    (gateway) => window.__voxeld.state().connected && window.__voxeld.state().gateway !== gateway,
    gateway,
  )
  for (const at of broken) await ada.untilBlock(at, AIR)
  broken.push(await ada.aimAtGround(broken))
  await ada.click('left')
  assert.ok(await ada.page.evaluate(() => window.__samePage), 'the page was reloaded')
})

test('the page is reloaded from the first node: everything is there', async () => {
  await ada.reload()
  for (const at of broken) await ada.untilBlock(at, AIR)
})

test('the page had no errors, and no requests to other origins', () => {
  assert.deepEqual(ada.troubles, [])
})
