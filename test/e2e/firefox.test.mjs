// One player in Debian's Firefox: what a player does first works there too. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { launchFirefox, missingForFirefox } from './firefox.mjs'
import { Player } from './player.mjs'

const AIR = 0
const BRICK = 19
const BRICK_KEY = 'Digit7' // its slot in the default hotbar
const COLOURS = 60 // the minimum of a picture that shows a world; a blank one has few

const missing = await missingForFirefox()
const options = missing ? { skip: `${missing} is not installed` } : {}

let daemon
let ada
let broken // the position of the broken block
let placed // of the brick

before(async () => {
  if (missing) return
  daemon = await Daemon.start()
  ada = await Player.open(daemon.url, 'ada', { launch: launchFirefox, settings: { weather: true } })
})

after(async () => {
  await ada?.close()
  await daemon?.remove()
})

test('joins in Firefox, and sees the world', options, async () => {
  await ada.play()
  assert.ok((await ada.coloursOf('firefox-world')) > COLOURS, 'the world is blank')
})

test('walks', options, async () => {
  const from = await ada.state()
  const to = await ada.walk(3)
  assert.ok(Math.hypot(to.x - from.x, to.z - from.z) >= 2.5, `walked from ${from.x}, ${from.z} to ${to.x}, ${to.z}`)
})

test('flies up, and lands', options, async () => {
  const { y } = await ada.state()
  await ada.page.keyboard.press('KeyF')
  await ada.until(() => window.__voxeld.state().flying)
  await ada.page.keyboard.down('Space')
  await ada.until((high) => window.__voxeld.state().y > high, y + 4)
  await ada.page.keyboard.up('Space')
  assert.ok((await ada.coloursOf('firefox-flight')) > COLOURS, 'the world from above is blank')
  await ada.page.keyboard.press('KeyF')
  await ada.until(() => window.__voxeld.state().onGround)
})

test('breaks a block and places one', options, async () => {
  broken = await ada.aimAtGround()
  await ada.click('left')
  assert.equal(await ada.blockAt(broken), AIR)
  const [x, y, z] = await ada.aimAtGround([broken])
  await ada.page.keyboard.press(BRICK_KEY)
  placed = [x, y + 1, z]
  await ada.click('right')
  assert.equal(await ada.blockAt(placed), BRICK)
})

test('chats', options, async () => {
  await ada.say('hello from Firefox')
  await ada.untilChat('hello from Firefox')
  await ada.until(() => window.__voxeld.state().screen === 'play')
})

test('opens the map', options, async () => {
  await ada.openMap()
  await ada.picture('firefox-map')
  await ada.closeMap()
})

test('reloads: the edits are there', options, async () => {
  const { player } = await ada.state()
  await ada.reload()
  await ada.untilBlock(broken, AIR)
  await ada.untilBlock(placed, BRICK)
  assert.equal((await ada.state()).player, player, 'the same key must be the same player')
  assert.ok((await ada.coloursOf('firefox-reloaded')) > COLOURS, 'the world is blank after reloading')
})

test('the page had no errors, and no requests to other origins', options, () => {
  assert.deepEqual(ada.troubles, [])
})

// The last test, because it causes trouble.
test('an exception and a rejected promise would have been seen', options, async () => {
  await ada.page.evaluate(() => {
    setTimeout(() => {
      throw new Error('thrown')
    })
    setTimeout(() => Promise.reject(new Error('rejected')))
  })
  const missing = () => ['thrown', 'rejected'].filter((text) => !ada.troubles.join().includes(text))
  for (let i = 0; missing().length > 0; i++) {
    assert.ok(i < 300, `not seen: ${missing().join()}`)
    await ada.nextFrames(1)
  }
})
