// Two real browsers on two real nodes of one world: one player hits the other, who is thrown back, and gives him a block, which
// is in his hotbar. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const LAMP_KEY = 'Digit8' // the lamp's place on the hotbar at first
const LAMP = 20
const NO_LAMP = [2, 1, 17, 16, 6, 18, 19, 4, 3] // a hotbar without a lamp

const nodes = []
let ada
let bob

before(async () => {
  nodes.push(await Daemon.start())
  nodes.push(await Daemon.start(nodes[0]))
})

after(async () => {
  await Promise.all([ada?.close(), bob?.close()])
  for (const node of nodes) await node.remove()
})

/** Turns a player's eyes to the other one, wherever he is by then, and waits until he is aimed at. */
function aimAt(player, other) {
  return player.until((name) => {
    const { others, aimedPlayer } = window.__voxeld.state()
    const there = others.find((one) => one.name === name)
    if (!there) return false
    if (aimedPlayer === there.player) return true
    window.__voxeld.lookAt(there.x - 0.5, there.y + 0.5, there.z - 0.5)
    return false
  }, other.name)
}

/** Waits until a line of the chat holds a text. */
function untilTold(player, text) {
  return player.until((text) => [...document.querySelectorAll('.chat-line')].some((line) => line.textContent.includes(text)), text)
}

test('two players meet, each at a node of his own', async () => {
  ada = await Player.open(nodes[0].url, 'ada')
  bob = await Player.open(nodes[1].url, 'bob')
  await bob.page.evaluate((hotbar) => {
    const stored = JSON.parse(localStorage.getItem('voxeld.settings') ?? '{}')
    localStorage.setItem('voxeld.settings', JSON.stringify({ ...stored, hotbar }))
  }, NO_LAMP)
  await bob.page.reload()
  await ada.play()
  await bob.play()
  await bob.walk(2)
  assert.notEqual((await ada.state()).gateway, (await bob.state()).gateway)
})

test('a click on the other one hits him, and throws him back', async () => {
  await ada.stand()
  await bob.stand()
  await aimAt(ada, bob)
  const before = await bob.state()
  const edits = (await ada.state()).acknowledgedEdits
  await ada.page.mouse.down()
  await ada.page.mouse.up()
  await bob.until(() => window.__voxeld.state().blows === 1)
  await bob.until(({ x, z }) => Math.hypot(window.__voxeld.state().x - x, window.__voxeld.state().z - z) > 0.3, before)
  await untilTold(ada, 'ada hits bob')
  await untilTold(bob, 'ada hits you')
  assert.equal((await ada.state()).acknowledgedEdits, edits, 'the blow broke a block')
  await bob.screenshot('players-hit')
})

test('G gives him the block in hand', async () => {
  await ada.page.keyboard.press(LAMP_KEY)
  await aimAt(ada, bob)
  await ada.page.keyboard.press('KeyG')
  await untilTold(bob, 'ada gives you 1 ×')
  await untilTold(ada, 'ada gives bob 1 ×')
  const { hotbar, gifts } = await bob.state()
  assert.equal(gifts[hotbar.indexOf(LAMP)], 1, `on the hotbar are ${hotbar}, given were ${gifts}`)
  await bob.screenshot('players-gift')
})

test('nothing went wrong on the pages', () => {
  assert.deepEqual([...ada.troubles, ...bob.troubles], [])
})
