// What a newcomer gets in their first minute: a title before the game is loaded; and after a reload no chunk again. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon, HILLS } from './daemon.mjs'
import { Player } from './player.mjs'

let daemon
let newcomer
let ada
let friend

before(async () => {
  daemon = await Daemon.start(null, [], HILLS)
})

after(async () => {
  await Promise.all([newcomer?.close(), ada?.close(), friend?.close()])
  await daemon?.remove()
})

const CHUNKS = 169 // at view 6

/** Returns the bytes of all HTTP answers and WebSocket frames from now until all chunks in view are there. */
async function bytesOf(player, join) {
  const network = await player.page.context().newCDPSession(player.page)
  const bytes = { http: 0, sockets: 0 }
  const countFrame = ({ response: { opcode, payloadData } }) => {
    bytes.sockets += Buffer.byteLength(payloadData, opcode === 2 ? 'base64' : 'utf8')
  }
  network.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes.http += encodedDataLength))
  network.on('Network.webSocketFrameReceived', countFrame)
  network.on('Network.webSocketFrameSent', countFrame)
  await network.send('Network.enable')
  await join()
  await player.until((chunks) => window.__voxeld.state().chunksLoaded >= chunks, CHUNKS)
  await network.detach()
  return bytes
}

/** Runs on the page: waits until all chunks are stored, and nothing more for two seconds. */
async function keptChunks() {
  const database = await new Promise((resolve, reject) => {
    const request = indexedDB.open('voxeld.chunks')
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
  const count = await new Promise((resolve) => {
    const request = database.transaction('entries').objectStore('entries').count()
    request.onsuccess = () => resolve(request.result)
  })
  database.close()
  if (window.__kept?.count !== count) window.__kept = { count, at: performance.now() }
  return count > 100 && performance.now() - window.__kept.at > 2000
}

test('the title is painted and usable before the game is loaded', async () => {
  let load
  let opened
  const held = new Promise((hold) => {
    const released = new Promise((resolve) => (load = resolve))
    const holdGame = async (page) => {
      await page.route(/\/assets\/start-[^/]*\.js$/, async (route) => {
        await released
        await route.continue()
      })
      hold(page)
    }
    opened = Player.open(daemon.url, '', { prepare: holdGame })
  })
  const page = await held
  await page.waitForSelector('.title button.primary:enabled')
  await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0)
  assert.match(await page.inputValue('.title input.field'), /^[A-Z][a-z]+[A-Z][a-z]+\d{4}$/)
  assert.equal(await page.evaluate(() => window.__voxeld), undefined, 'the game is there already')
  await page.click('.title button.primary') // joins as soon as the game is there
  load()
  newcomer = await opened
  await newcomer.until(() => window.__voxeld?.state().connected && window.__voxeld.state().chunksMeshed >= 9)
})

const HELD_MS = 400
const DIRECTIONS = { W: 'KeyW', A: 'KeyA', S: 'KeyS', D: 'KeyD' } // what is written on keys, and their codes

/** Does what a hint says once, with the mouse and the keys that it names. */
async function follow(page, { text, keys }) {
  if (text.startsWith('Move the mouse')) return turn(page, 150, 0)
  if (/ to walk/.test(text)) {
    const key = DIRECTIONS[keys[Math.floor(Math.random() * keys.length)]]
    await page.keyboard.press(key, { delay: HELD_MS })
    return null
  }
  const [, side] = /^(Left|Right) click/.exec(text) ?? []
  if (side) {
    await turn(page, 0, 60) // the ground is below
    return page.mouse.click(...at, { button: side.toLowerCase(), delay: 50 })
  }
  assert.match(text, /to say hello/)
  await page.keyboard.press(`Key${keys[0]}`)
  await page.keyboard.type('hello')
  return page.keyboard.press('Enter')
}

let at = [480, 300]

/** Moves the mouse by so many pixels. */
function turn(page, x, y) {
  at = [at[0] + x, at[1] + y]
  return page.mouse.move(...at, { steps: 3 })
}

test('a newcomer who follows the hints on the screen places a block within 60 s of the first paint', async () => {
  const { page } = newcomer
  const hint = () =>
    page.evaluate(() => {
      const line = document.querySelector('.hints .next:not(.last)')
      if (!line) return null
      return { text: line.textContent, keys: [...line.querySelectorAll('kbd')].map((key) => key.textContent) }
    })
  await page.waitForSelector('.hints .next')
  await newcomer.picture('first-minute-hints')
  for (let now = await hint(); now; now = await hint()) {
    await follow(page, now)
    await newcomer.nextFrames(2)
  }
  await newcomer.picture('first-minute-hints-done')
  const marks = await page.evaluate(() => {
    const [paint] = performance.getEntriesByName('first-contentful-paint')
    return performance.getEntriesByType('mark').map(({ name, startTime }) => [name, startTime - paint.startTime])
  })
  const after = Object.fromEntries(marks)
  assert.deepEqual(
    Object.keys(after).sort(),
    ['break', 'chat', 'look', 'place', 'walk'].map((step) => `hint: ${step}`),
  )
  console.log(`placed a block ${(after['hint: place'] / 1000).toFixed(1)} s after the first paint`)
  assert.ok(after['hint: place'] < 60_000, `placed a block ${after['hint: place']} ms after the first paint`)
  await newcomer.untilChat('hello')
  await page.waitForSelector('.hints', { state: 'hidden' })
  await page.reload()
  await newcomer.page.waitForFunction(() => window.__voxeld)
  await page.click('.title button.primary')
  await newcomer.untilStanding()
  assert.equal(await page.isVisible('.hints'), false, 'the hints are back')
})

test('a reload at view 6 transfers at most 40 kB', async () => {
  ada = await Player.open(daemon.url, 'ada', { settings: { view: 6, horizon: true } })
  const first = await bytesOf(ada, () => ada.play())
  await ada.untilAsync(keptChunks)
  const again = await bytesOf(ada, () => ada.reload())
  console.log(
    `joining at view 6 took ${first.sockets} bytes of WebSocket frames; a reload ${again.sockets}, and ${again.http} of HTTP`,
  )
  assert.ok(first.sockets > 200_000, `only ${first.sockets} bytes when nothing was kept: is the measurement right?`)
  const { http, sockets } = again
  assert.ok(http + sockets <= 40_000, `${http} bytes of HTTP answers, ${sockets} of WebSocket frames`)
})

test('a link from the menu lands a friend beside the player who made it', async () => {
  await ada?.close() // its land is more than this machine draws quickly
  const from = await newcomer.state()
  await newcomer.walk(12)
  await newcomer.stand()
  await newcomer.page.evaluate(() => document.exitPointerLock())
  await newcomer.page.click('.menu button:has-text("Invite a friend")')
  await newcomer.picture('first-minute-invite')
  const link = await newcomer.page.inputValue('input[aria-label="Link to this place"]')
  assert.match(await newcomer.page.textContent('.key-result'), /works on this machine only/)
  await newcomer.page.getByRole('button', { name: 'Close' }).click()
  const host = await newcomer.state()
  assert.ok(Math.hypot(host.x - from.x, host.z - from.z) > 8, 'the host is still where players start')
  friend = await Player.open(link, 'friend')
  await friend.play()
  await friend.until(
    (host) => Math.hypot(window.__voxeld.state().x - host.x, window.__voxeld.state().z - host.z) < 2,
    host,
  )
  await friend.until(({ name }) => window.__voxeld.state().others.some((other) => other.name === name), host)
  assert.equal(await friend.page.evaluate(() => location.hash), '')
})

test('no problems occurred on the pages', () => {
  for (const player of [newcomer, ada, friend]) assert.deepEqual(player.troubles, [])
})
