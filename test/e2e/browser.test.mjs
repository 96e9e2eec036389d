// Two real browsers and one daemon: players walk, break, place, see each other, and reconnect.
// Run with `npm run e2e` in web/; VOXELD_BIN names the daemon. With PICTURES=1, what players see is saved in test/e2e/screenshots/.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon, HILLS } from './daemon.mjs'
import { Player } from './player.mjs'

const AIR = 0
const BRICK = 19
const BRICK_KEY = 'Digit7' // its slot in the default hotbar
const COLOURS = 60 // the minimum of a picture that shows a world; a blank one has few

let daemon
let ada
let bob
const broken = [] // positions of broken blocks
const placed = [] // positions of bricks

before(async () => {
  daemon = await Daemon.start(null, [], HILLS)
})

after(async () => {
  await Promise.all([ada?.close(), bob?.close()])
  await daemon?.remove()
})

test('the title screen shows a world behind it', async () => {
  ada = await Player.open(daemon.url, 'ada')
  await ada.until(() => window.__voxeld?.state().chunksMeshed > 20)
  assert.ok((await ada.coloursOf('1-title')) > COLOURS, 'the title screen is blank')
  assert.ok(ada.received > 50_000 && ada.received < 125_000, `the page and its scripts took ${ada.received} bytes`)
})

test('a player joins and walks', async () => {
  await ada.page.fill('.title input.field', ada.name)
  await ada.page.click('.title button.primary')
  await ada.untilStanding()
  await ada.until(() => document.pointerLockElement)
  const from = await ada.state()
  const to = await ada.walk(3)
  assert.ok(Math.hypot(to.x - from.x, to.z - from.z) >= 2.5, `walked from ${from.x}, ${from.z} to ${to.x}, ${to.z}`)
  assert.ok((await ada.coloursOf('2-world')) > COLOURS, 'the world is blank')
})

test('breaks a block and places one', async () => {
  broken.push(await ada.aimAtGround())
  await ada.click('left')
  assert.equal(await ada.blockAt(broken[0]), AIR)
  const ground = await ada.aimAtGround(broken)
  await ada.page.keyboard.press(BRICK_KEY)
  placed.push([ground[0], ground[1] + 1, ground[2]])
  await ada.click('right')
  assert.equal(await ada.blockAt(placed[0]), BRICK)
  await ada.picture('3-edited')
})

test('a second player sees both edits, a new one at once, and the first player', async () => {
  bob = await Player.open(daemon.url, 'bob')
  await bob.play()
  await bob.untilBlock(broken[0], AIR)
  await bob.untilBlock(placed[0], BRICK)

  broken.push(await ada.aimAtGround([...broken, ...placed]))
  await ada.click('left')
  await bob.untilBlock(broken[1], AIR)

  await bob.until(() => window.__voxeld.state().others.some(({ name }) => name === 'ada'))
  await ada.until(() => window.__voxeld.state().others.some(({ name }) => name === 'bob'))
  const sight = () => bob.page.evaluate(() => window.__voxeld.state().others.find(({ name }) => name === 'ada'))
  const seen = await sight()
  await ada.walk(2)
  await bob.until(({ x, z }) => {
    const ada = window.__voxeld.state().others.find(({ name }) => name === 'ada')
    return Math.hypot(ada.x - x, ada.z - z) >= 1.5
  }, seen)
  const now = await sight()
  await bob.page.evaluate(({ x, y, z }) => window.__voxeld.lookAt(x - 0.5, y + 0.7, z - 0.5), now)
  await bob.until((frames) => window.__voxeld.state().frames > frames + 3, (await bob.state()).frames)
  assert.ok((await bob.coloursOf('4-bob-sees-ada')) > COLOURS)
})

test('the GPU loses everything: the page says so, and the picture comes back', async () => {
  await bob.page.evaluate(() => {
    window.__gpu = document.querySelector('canvas').getContext('webgl2').getExtension('WEBGL_lose_context')
    window.__gpu.loseContext()
  })
  await bob.page.waitForSelector('.graphics.banner:not(.hidden)')
  await bob.picture('4-graphics-lost')
  await bob.page.evaluate(() => window.__gpu.restoreContext())
  await bob.page.waitForSelector('.graphics.banner.hidden', { state: 'attached' })
  await bob.until(() => window.__voxeld.state().meshBacklog === 0)
  await bob.until((frames) => window.__voxeld.state().frames > frames + 3, (await bob.state()).frames)
  assert.ok((await bob.coloursOf('4-graphics-back')) > COLOURS)
})

test('players chat', async () => {
  await ada.page.keyboard.press('KeyT')
  await ada.page.keyboard.type('hello bob')
  // as when the window loses the focus: the line stays
  await ada.page.$eval('.chat-input', (line) => line.dispatchEvent(new FocusEvent('focusout', { bubbles: true })))
  await ada.page.keyboard.press('Enter')
  await bob.page.waitForFunction(() => document.querySelector('.chat-log').textContent.includes('hello bob'))
  await ada.until(() => window.__voxeld.state().screen === 'play')
})

test('after both reload, everything is still there', async () => {
  const stood = await ada.state()
  await Promise.all([ada.reload(), bob.reload()])
  for (const player of [ada, bob]) {
    for (const at of broken) await player.untilBlock(at, AIR)
    for (const at of placed) await player.untilBlock(at, BRICK)
  }
  const stands = await ada.state()
  assert.equal(stands.player, stood.player, 'the same key must be the same player')
  assert.ok(Math.hypot(stands.x - stood.x, stands.z - stood.z) < 1.5, 'the player is not where they left')
})

test('the daemon is killed and restarted: the players reconnect, and the edits are there', async () => {
  for (const player of [ada, bob]) player.mayLoseConnection = true
  await daemon.end('SIGKILL')
  await ada.until(() => !window.__voxeld.state().connected)
  await ada.page.waitForSelector('.connection.banner:not(.hidden)')
  await ada.picture('5-away')
  await ada.say('nobody hears this yet')
  assert.equal(await ada.page.inputValue('.chat-input'), 'nobody hears this yet') // it stays
  await daemon.run()
  for (const player of [ada, bob]) {
    await player.until(() => window.__voxeld.state().connected)
    await player.page.waitForSelector('.connection.banner.hidden', { state: 'attached' })
    for (const at of broken) await player.untilBlock(at, AIR)
    for (const at of placed) await player.untilBlock(at, BRICK)
  }
  await ada.page.keyboard.press('Enter')
  await bob.untilChat('nobody hears this yet')
  // and the session works: one more edit
  await ada.until(() => window.__voxeld.state().onGround)
  broken.push(await ada.aimAtGround([...broken, ...placed]))
  await ada.click('left')
  await bob.untilBlock(broken.at(-1), AIR)
  assert.ok((await ada.coloursOf('6-back')) > COLOURS)
})

test('without the storage of the browser, a player plays, and is told that nothing is stored', async () => {
  await bob.page.addInitScript(() => {
    const get = () => {
      throw new DOMException('The storage is blocked.', 'SecurityError')
    }
    Object.defineProperty(window, 'localStorage', { get })
  })
  await bob.reload()
  await bob.untilChat('This browser stores nothing')
  await bob.picture('7-without-storage')
})

test('the pages had no errors, and no requests to other origins', () => {
  assert.deepEqual(ada.troubles, [])
  assert.deepEqual(bob.troubles, [])
})

// The last test, because it causes trouble.
test('the page runs no inline script, and a violation of the policy would have been seen', async () => {
  await ada.page.evaluate(() => {
    const script = document.createElement('script')
    script.textContent = 'window.__inline = true'
    document.body.append(script)
  })
  assert.equal(await ada.page.evaluate(() => window.__inline), undefined)
  assert.match(ada.troubles.join(), /Content Security Policy/)
})
