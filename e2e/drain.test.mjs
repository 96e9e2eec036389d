// A node is drained under a real browser: the player goes on at another node, on the same page, and an edit that is
// made on the way is there. Three nodes: land can be changed while most of its copies are up. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const AIR = 0

const nodes = [] // those that run
let drained // the one that ran first
let ada
const broken = [] // places of broken blocks

before(async () => {
  nodes.push(await Daemon.start())
  for (let i = 0; i < 2; i++) nodes.push(await Daemon.start(nodes[0]))
})

after(async () => {
  await ada?.close()
  for (const node of new Set([...nodes, drained])) await node?.remove()
})

/** Waits until all land has a copy on every node. */
async function copied() {
  for (let tries = 0; tries < 300; tries++) {
    const regions = (await Promise.all(nodes.map((node) => node.ask('regions')))).flat()
    if (regions.length > 0 && regions.every(({ members, voters }) => members.length === 3 && voters === 3)) return
    await pause(100)
  }
  throw new Error('not all land has three copies')
}

/** The node that serves the player. */
async function homeOf(player) {
  const { gateway } = await player.state()
  for (const node of nodes) if ((await node.ask('status')).peer === gateway) return node
  throw new Error(`no node is ${gateway}`)
}

/** Breaks a block in the moment in which the page is between two nodes, and notes what the player sees meanwhile. */
function watch(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector('#view')
    const least = { chunks: Infinity, screens: [], banner: false, edited: null }
    window.__watch = least
    window.__samePage = true
    const look = () => {
      const { connected, chunksLoaded, screen } = window.__voxeld.state()
      least.chunks = Math.min(least.chunks, chunksLoaded)
      if (!least.screens.includes(screen)) least.screens.push(screen)
      if (!document.querySelector('.banner').classList.contains('hidden')) least.banner = true
      const aim = window.__voxeld.aim() // she may have slid since she turned her eyes
      if (connected || least.edited || !aim) return
      least.edited = [aim.x, aim.y, aim.z]
      canvas.dispatchEvent(new MouseEvent('mousedown', { button: 0, bubbles: true }))
      canvas.dispatchEvent(new MouseEvent('mouseup', { button: 0, bubbles: true }))
    }
    // a socket is closed and the next one opened in one go, so the moment has to be caught there
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

test('a player joins, and her land has three copies', async () => {
  ada = await Player.open(nodes[0].url, 'ada')
  await ada.play()
  broken.push(await ada.aimAtGround())
  await ada.click('left')
  await copied()
})

test('her node is drained: she goes on at another one, on the same page', async () => {
  await ada.aimAtGround(broken)
  const { gateway, chunksLoaded, x, z } = await ada.state()
  await watch(ada.page)
  drained = nodes.shift()
  const answer = await drained.drain()
  assert.equal(answer.followed, 1, JSON.stringify(answer))
  await ada.until((gateway) => window.__voxeld.state().connected && window.__voxeld.state().gateway !== gateway, gateway)
  const now = await ada.state()
  await homeOf(ada)
  assert.ok(Math.hypot(now.x - x, now.z - z) < 1.5, `was at ${x}, ${z}, is at ${now.x}, ${now.z}`)
  const seen = await ada.page.evaluate(() => {
    window.__stopWatching()
    return { ...window.__watch, samePage: window.__samePage }
  })
  assert.ok(seen.samePage, 'the page was loaded anew')
  assert.ok(seen.edited, 'no edit was made on the way')
  broken.push(seen.edited)
  assert.deepEqual(seen.screens, ['play'])
  assert.ok(!seen.banner, 'the player was told that the connection is away')
  assert.ok(seen.chunks >= chunksLoaded * 0.8, `of ${chunksLoaded} chunks ${seen.chunks} were left on the way`)
  await ada.screenshot('7-moved')
})

test('what she built before and on the way is committed, and she builds on', async () => {
  await ada.until(() => window.__voxeld.state().pendingEdits === 0)
  assert.equal((await ada.state()).acknowledgedEdits, broken.length)
  for (const at of broken) assert.equal(await ada.blockAt(at), AIR, `${JSON.stringify(broken)} at ${at}`)
  broken.push(await ada.aimAtGround(broken))
  await ada.click('left')
})

test('the first node comes back, her new one goes: she is on the same page still', async () => {
  await drained.run()
  nodes.push(drained)
  await copied()
  const home = await homeOf(ada)
  const { gateway } = await ada.state()
  await home.drain()
  await ada.until((gateway) => window.__voxeld.state().connected && window.__voxeld.state().gateway !== gateway, gateway)
  for (const at of broken) await ada.untilBlock(at, AIR)
  broken.push(await ada.aimAtGround(broken))
  await ada.click('left')
  assert.ok(await ada.page.evaluate(() => window.__samePage), 'the page was loaded anew')
})

test('she loads the page anew, from the node that was drained first: everything is there', async () => {
  await ada.reload()
  for (const at of broken) await ada.untilBlock(at, AIR)
})

test('nothing went wrong on the page, and nothing came from elsewhere', () => {
  assert.deepEqual(ada.troubles, [])
})
