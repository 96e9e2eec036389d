// A newcomer's first minute on a node of another operator, and the places that players go to. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const nodes = []
let ada
let newcomer

before(async () => {
  nodes.push(await Daemon.start())
  nodes.push(await Daemon.start(nodes[0]))
})

after(async () => {
  await Promise.all([ada?.close(), newcomer?.close()])
  for (const node of nodes) await node.remove()
})

function nameOnTitle(player) {
  return player.page.inputValue('.title input.field')
}

/** Waits until a player is within a block of a place. */
function untilNear(player, { x, z }) {
  return player.until(([x, z]) => Math.hypot(window.__voxeld.state().x - x, window.__voxeld.state().z - z) < 1, [x, z])
}

/** Waits until a node knows of a command that was entered on another one. */
async function untilKnown(node, command) {
  for (let tries = 0; tries < 600; tries++) {
    if ((await node.ask('audit')).some((entry) => entry.command.startsWith(command))) return
    await pause(100)
  }
  throw new Error(`the node does not know of "${command}"`)
}

test('a newcomer plays at once, under a name that they are offered', async () => {
  newcomer = await Player.open(nodes[1].url, '')
  await newcomer.page.waitForFunction(() => window.__voxeld)
  newcomer.name = await nameOnTitle(newcomer)
  assert.match(newcomer.name, /^[A-Z][a-z]+[A-Z][a-z]+\d{4}$/)
  await newcomer.picture('people-title')
  await newcomer.page.check('.title input[type=checkbox]') // as a guest
  await newcomer.play()
})

test('a line to the world reaches a player on another node, with links, places and their name', async () => {
  ada = await Player.open(nodes[0].url, 'ada')
  await ada.play()
  await ada.say(`${newcomer.name}, see https://example.org at 10 64 -20`)
  await newcomer.untilChat('Worldada')
  await newcomer.page.keyboard.press('KeyT')
  await newcomer.page.waitForSelector(
    '.chat-line.mention a[href="https://example.org/"][rel~=noopener], .chat-line.mention a[href="https://example.org"][rel~=noopener]',
  )
  await newcomer.picture('people-world')
  await newcomer.page.click('.chat-place')
  assert.equal(await newcomer.page.inputValue('.chat-input'), '/visit 10 64 -20')
  await newcomer.page.keyboard.press('Escape')
})

test('the button or Tab chooses who reads a line, and ignored players are not shown', async () => {
  const { page } = ada
  await page.keyboard.press('KeyT')
  assert.equal(await page.textContent('.chat-channel'), 'World')
  await page.keyboard.press('Tab')
  assert.equal(await page.textContent('.chat-channel'), 'Nearby')
  await page.click('.chat-channel')
  assert.equal(await page.textContent('.chat-channel'), 'World')
  await page.keyboard.type('one')
  await page.keyboard.press('Enter')
  await newcomer.untilChat('Worldadaone')
  await newcomer.say('/ignore ada')
  await newcomer.untilChat('You do not see any more what ada writes.')
  await ada.say('two')
  await ada.untilChat('two')
  await newcomer.say('/ignore ada')
  await newcomer.untilChat('You see what ada writes again.')
  await ada.say('three')
  await newcomer.untilChat('Worldadathree')
  const lines = await newcomer.page.locator('.chat-line').allTextContents()
  assert.ok(!lines.some((line) => line.endsWith('adatwo')), lines.join(' / '))
  // the player's own lines come back with the arrow
  await page.keyboard.press('KeyT')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  assert.equal(await page.inputValue('.chat-input'), 'two')
  await page.keyboard.press('Escape')
})

test('after a reload the last lines to the world are there, once', async () => {
  await newcomer.reload()
  await newcomer.untilChat('Worldadathree')
  await ada.say('four')
  await newcomer.untilChat('Worldadafour')
  const lines = await newcomer.page.locator('.chat-line').allTextContents()
  for (const text of ['one', 'three', 'four'])
    assert.equal(lines.filter((line) => line.endsWith(`ada${text}`)).length, 1, lines.join(' / '))
})

test('a private line reaches a player on another node, and nobody else', async () => {
  await ada.register()
  await ada.say(`/owner ${await nodes[0].operate('owner')}`)
  await ada.untilChat('You own this world now')
  await ada.say(`/msg ${newcomer.name} welcome!`)
  await ada.untilChat(`To ${newcomer.name}welcome!`)
  await newcomer.untilChat('From adawelcome!')
  await newcomer.say('/r thank you')
  await ada.untilChat(`From ${newcomer.name}thank you`)
  await newcomer.say('/who')
  await newcomer.untilChat('On other nodes: ada.')
  await newcomer.picture('people-message')
})

test('a warp leads to where an admin stood, a home to where its player stood', async () => {
  const market = await ada.state()
  await ada.say('/setwarp market')
  await ada.untilChat('/warp market leads to')
  await untilKnown(nodes[1], 'setwarp market')
  await newcomer.walk(6)
  await newcomer.stand()
  const home = await newcomer.state()
  await newcomer.say('/sethome')
  await newcomer.untilChat('This is your home now')
  await newcomer.say('/warp market')
  await untilNear(newcomer, market)
  await newcomer.say('/home')
  await untilNear(newcomer, home)
  await newcomer.stand()
  await untilNear(newcomer, home) // and is not put back
})

test('a moderator goes to a player, and sees that they are a guest', async () => {
  await ada.say(`/tp ${newcomer.name}`)
  await untilNear(ada, await newcomer.state())
  await ada.walk(4)
  const { x, y, z } = await newcomer.state()
  await ada.page.evaluate((at) => window.__voxeld.lookAt(...at), [x, y + 1, z])
  await ada.stand()
  await ada.picture('people-guest')
})

test('the border stops a player, and not an admin', async () => {
  const { x, z } = await newcomer.state()
  const [bx, bz] = [Math.floor(x), Math.floor(z)]
  await ada.say(`/set border ${bx - 1},${bz - 1} ${bx + 1},${bz + 1}`)
  await ada.untilChat('The border of the world is at')
  await untilKnown(nodes[1], 'set border')
  await newcomer.page.evaluate(() => {
    const { x, y, z } = window.__voxeld.state()
    window.__voxeld.lookAt(x + 20, y + 1, z)
  })
  await newcomer.page.keyboard.down('KeyW')
  await newcomer.page.keyboard.down('Space')
  await newcomer.until(() => document.body.textContent.includes('The world ends here.'))
  await newcomer.picture('people-border')
  await newcomer.page.keyboard.up('Space')
  await newcomer.page.keyboard.up('KeyW')
  await newcomer.until((border) => window.__voxeld.state().x < border + 0.01, bx + 2) // the correction may still be on its way
  await newcomer.stand()
  await newcomer.until((border) => window.__voxeld.state().x < border + 0.01, bx + 2)
  await ada.walk(4)
  await ada.picture('people-outside')
})

test('the pages had no errors', () => {
  assert.deepEqual([...ada.troubles, ...newcomer.troubles], [])
})
