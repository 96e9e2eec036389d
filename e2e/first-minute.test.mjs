// What a newcomer gets in their first minute: a title before the game is loaded. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

let daemon
let newcomer

before(async () => {
  daemon = await Daemon.start()
})

after(async () => {
  await newcomer?.close()
  await daemon?.remove()
})

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
    opened = Player.open(daemon.url, '', holdGame)
  })
  const page = await held
  await page.waitForSelector('.title button.primary:enabled')
  await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0)
  assert.match(await page.inputValue('.title input.field'), /^[A-Z][a-z]+[A-Z][a-z]+\d{4}$/)
  assert.equal(await page.evaluate(() => window.__voxeld), undefined, 'the game is there already')
  await page.click('.title button.primary') // joins as soon as the game is there
  await page.screenshot({ path: join(import.meta.dirname, 'screenshots/first-minute-title.png') })
  load()
  newcomer = await opened
  await newcomer.until(() => window.__voxeld?.state().connected && window.__voxeld.state().chunksMeshed >= 9)
})

test('no problems occurred on the page', () => {
  assert.deepEqual(newcomer.troubles, [])
})
