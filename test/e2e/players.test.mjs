// Two real browsers on two nodes of one world: one player hits the other, who is knocked back, and gives them a block,
// which appears in their hotbar. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const LAMP_KEY = 'Digit8' // the lamp's slot in the default hotbar
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

/** Turns a player's camera to the other one, and waits until they are aimed at and stand still. */
function aimAt(player, other) {
  return player.until((name) => {
    const { others, aimedPlayer } = window.__voxeld.state()
    const there = others.find((one) => one.name === name)
    if (!there) return false
    const before = window.aimedAt
    window.aimedAt = there
    const rests = before && ['x', 'y', 'z'].every((axis) => before[axis] === there[axis])
    if (rests && aimedPlayer === there.player) return true
    window.__voxeld.lookAt(there.x - 0.5, there.y + 0.5, there.z - 0.5)
    return false
  }, other.name)
}

test('two players on different nodes meet', async () => {
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

test('a player chooses how they look, and the other one sees it', async () => {
  await ada.page.evaluate(() => document.exitPointerLock()) // as the browser does at Escape
  await ada.page.click('.menu button:has-text("Change your look")')
  await ada.page.fill('.skin-dialog [aria-label="Main colour"]', '#ff9911')
  await ada.page.fill('.skin-dialog [aria-label="Second colour"]', '#3322bb')
  await ada.page.check('.skin-dialog [aria-label="Checks"]', { force: true })
  await ada.picture('players-skin-dialog')
  await ada.page.click('.skin-dialog button.primary')
  await ada.page.click('.menu button.primary')
  await ada.until(() => window.__voxeld.state().connected) // their session has begun anew
  await ada.say('how do I look?')
  await bob.untilChat('how do I look?')
  const colour = await bob.page.evaluate(() => {
    const line = [...document.querySelectorAll('.chat-line')].find(({ textContent }) => textContent.includes('look?'))
    return line.querySelector('b').style.color
  })
  assert.equal(colour, 'rgb(255, 153, 17)')
  await bob.stand()
  await aimAt(bob, ada)
  await bob.nextFrames(3)
  await bob.picture('players-skin')
  await ada.page.keyboard.press('KeyV')
  await ada.nextFrames(3)
  await ada.picture('players-skin-own')
  await ada.page.keyboard.press('KeyV')
  await ada.page.keyboard.press('KeyV')
})

test('what a player holds, and that they sneak, is seen by the other one', async () => {
  const sees = (held, sneaks) =>
    bob.until(
      ([held, sneaks]) => {
        const state = window.__voxeld.state()
        const ada = state.others.find(({ name }) => name === 'ada')
        return ada?.held === held && ada.sneaks === sneaks && state.heldBlocks === 1
      },
      [held, sneaks],
    )
  const { hotbar } = await ada.state()
  await ada.page.keyboard.press('Digit3')
  await sees(hotbar[2], false)
  await aimAt(bob, ada)
  await bob.nextFrames(3)
  await bob.picture('players-holds')
  await ada.page.keyboard.down('ShiftLeft')
  await sees(hotbar[2], true)
  await bob.nextFrames(20)
  await bob.picture('players-sneaks')
  await ada.page.keyboard.press('Digit1')
  await sees(hotbar[0], true)
  await ada.page.keyboard.up('ShiftLeft')
  await sees(hotbar[0], false)
})

test('the list of players shows who is near, on whichever node', async () => {
  await ada.page.keyboard.down('Tab')
  await ada.until(() => window.__voxeld.state().nearby.length === 2)
  await ada.until(() => document.querySelector('.players').textContent.includes('bob'))
  await ada.picture('players-list')
  await ada.page.keyboard.up('Tab')
})

test('a click on the other player hits them, and knocks them back', async () => {
  await ada.stand()
  await bob.stand()
  await aimAt(ada, bob)
  const before = await bob.state()
  const edits = (await ada.state()).acknowledgedEdits
  await ada.page.mouse.down()
  await ada.page.mouse.up()
  await bob.until(() => window.__voxeld.state().hitsTaken === 1)
  await bob.until(({ x, z }) => Math.hypot(window.__voxeld.state().x - x, window.__voxeld.state().z - z) > 0.3, before)
  await ada.untilChat('ada hit bob')
  await bob.untilChat('ada hit you')
  assert.equal((await ada.state()).acknowledgedEdits, edits, 'the hit broke a block')
  await bob.picture('players-hit')
})

test('G gives the other player the selected block', async () => {
  await ada.page.keyboard.press(LAMP_KEY)
  await bob.stand() // they were knocked back
  await aimAt(ada, bob)
  await ada.page.keyboard.press('KeyG')
  await bob.untilChat('ada gave you 1 ×')
  await ada.untilChat('ada gave bob 1 ×')
  const { hotbar, gifts } = await bob.state()
  assert.equal(gifts[hotbar.indexOf(LAMP)], 1, `hotbar: ${hotbar}, gifts: ${gifts}`)
  await bob.picture('players-gift')
})

test('the pages had no errors', () => {
  assert.deepEqual([...ada.troubles, ...bob.troubles], [])
})
