// A moderator's first evening, in real browsers on two nodes: the first player owns the world, and a griefer on the other node is kicked,
// banned and pardoned. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const nodes = []
let ada
let eve

before(async () => {
  nodes.push(await Daemon.start())
  nodes.push(await Daemon.start(nodes[0]))
})

after(async () => {
  await Promise.all([ada?.close(), eve?.close()])
  for (const node of nodes) await node.remove()
})

/** Waits until the title says why the player was sent away. */
function untilTitle(player, text) {
  return player.until((text) => {
    const error = document.querySelector('.title .error')
    return window.__voxeld.state().screen === 'title' && error.textContent.includes(text)
  }, text)
}

test('the first player takes the token, and owns the world', async () => {
  ada = await Player.open(nodes[0].url, 'ada')
  await ada.play()
  await ada.register()
  await ada.say(`/owner ${await nodes[0].operate('owner')}`)
  await ada.untilChat('You own this world now')
})

test('/spawn brings a player back', async () => {
  const { x, z } = await ada.state()
  await ada.walk(4)
  await ada.say('/spawn')
  await ada.until(([x, z]) => Math.hypot(window.__voxeld.state().x - x, window.__voxeld.state().z - z) < 1, [x, z])
})

test('commands are completed', async () => {
  eve = await Player.open(nodes[1].url, 'eve')
  await eve.play()
  await eve.register()
  await ada.page.keyboard.press('/')
  await ada.until(() => document.querySelectorAll('.chat-suggestions div').length > 5)
  await ada.picture('moderation-commands')
  await ada.page.keyboard.type('ki')
  await ada.page.keyboard.press('Tab')
  await ada.until(() => document.querySelector('.chat-input').value === '/kick ')
  await ada.picture('moderation-kick')
  await ada.page.keyboard.type('eve stop that')
  await ada.page.keyboard.press('Enter')
  await ada.untilChat('eve was kicked.')
  await untilTitle(eve, 'You were kicked by ada: stop that.')
})

test('a ban keeps a player out, on every node, until it is lifted', async () => {
  await ada.say('/ban eve 2h griefing the castle')
  await ada.untilChat('eve is banned for 2 hours.')
  while (!(await nodes[1].operate('bans')).includes('castle'));
  await eve.page.click('.title button.primary')
  await untilTitle(eve, 'You are banned from this world by ada (2 hours left): griefing the castle.')
  await eve.picture('moderation-banned')
  await ada.say('/bans')
  await ada.untilChat('eve: banned by ada (2 hours left): griefing the castle')
  await ada.picture('moderation-bans')
  await ada.say('/pardon eve')
  await ada.untilChat('The ban of eve is lifted.')
})

test('a key goes to another device as a link, and its player is the same there', async () => {
  const { page } = ada
  await page.evaluate(() => document.exitPointerLock()) // as the browser does at Escape
  await page.click('text=Play on another device…')
  await page.fill('.key-dialog [aria-label=Passphrase]', 'short')
  await page.click('.key-dialog button.primary')
  await ada.until(() => document.querySelector('.key-dialog .error').textContent === 'Use at least 8 characters.')
  await page.fill('.key-dialog [aria-label=Passphrase]', 'correct horse')
  await page.click('.key-dialog button.primary')
  await page.waitForSelector('.key-dialog canvas.qr')
  await ada.picture('key-export')
  const link = await page.inputValue('.key-dialog [aria-label="Link with your key"]')
  const { player } = await ada.state()
  await ada.close()

  ada = await Player.open(link.replace(nodes[0].url, nodes[1].url), 'ada') // each node's page keeps keys of its own
  await ada.page.fill('.key-dialog [aria-label=Passphrase]', 'wrong horse')
  await ada.page.click('.key-dialog button.primary')
  await ada.until(() => document.querySelector('.key-dialog .error').textContent.startsWith('The passphrase is wrong'))
  await ada.picture('key-import')
  await ada.page.fill('.key-dialog [aria-label=Passphrase]', 'correct horse')
  await ada.page.click('.key-dialog button.primary')
  await ada.until(() => document.querySelector('.title input').value === 'ada')
  assert.ok(!ada.page.url().includes('#'), 'the key stays in the address')
  await ada.play()
  assert.equal((await ada.state()).player, player)
  await ada.say('/bans') // as an owner may
  await ada.untilChat('Nobody is banned or muted.')
})

test('the pages had no errors', () => {
  assert.deepEqual([...ada.troubles, ...eve.troubles], [])
})
