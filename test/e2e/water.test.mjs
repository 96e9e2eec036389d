// Water: near and far it looks the same, seen from above, and the sun lights its floor. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon, HILLS } from './daemon.mjs'
import { STILL, setTimes } from './daytime.mjs'
import { Player } from './player.mjs'

const OCEAN = [1920, -2560]
const AHEAD = [100, -20, 0]
const FLOOR = [10, -8, -5]
/** A part of the picture without land. */
const WATER = { left: 0.3, top: 0.55, right: 0.5, bottom: 1 }
const STEP = 8 // between rows of the picture: it was 18 where near water ended
const ROWS = 20

let daemon
let ada

before(async () => {
  daemon = await Daemon.start(null, [], HILLS)
})

after(async () => {
  await ada?.close()
  await daemon?.remove()
})

/** Goes to a height over the ocean, and looks along a direction, once all land is there. */
async function goTo(y, direction) {
  const [x, z] = OCEAN
  await ada.say(`/tp ${x} ${y} ${z}`)
  await ada.until(
    ([x, y, z]) => {
      const { horizon, meshBacklog, chunksMeshed, ...at } = window.__voxeld.state()
      const there = Math.hypot(at.x - x, at.y - y, at.z - z) < 3 && chunksMeshed >= 25 && meshBacklog === 0
      return there && horizon.wanted > 0 && horizon.there === horizon.wanted && horizon.reach > 2000
    },
    [x, y, z],
  )
  await ada.page.evaluate(([dx, dy, dz]) => {
    const { x, y, z } = window.__voxeld.state()
    window.__voxeld.lookAt(Math.floor(x + dx), Math.floor(y + dy), Math.floor(z + dz))
  }, direction)
  await ada.nextFrames(12) // far land fades out where blocks are
}

test('from above, near and far water are one', async () => {
  const noon = { minutes: 12 * 60, dayMs: STILL }
  const settings = { renderScale: 1, horizon: true }
  ada = await Player.open(daemon.url, 'ada', { settings, prepare: (page) => setTimes(page, noon) })
  await ada.play()
  await ada.register()
  await ada.say(`/owner ${await daemon.operate('owner')}`)
  await ada.untilChat('You own this world now')
  await ada.page.keyboard.press('KeyF')
  await goTo(120, AHEAD)
  const rows = (await ada.luminances('water-above', WATER, ROWS)).map(({ median }) => median)
  const steps = rows.slice(1).map((row, i) => Math.abs(row - rows[i]))
  console.log('steps of luminance', steps.map(Math.round).join(' '))
  assert.ok(Math.max(...steps) <= STEP, `the rows are ${rows.map(Math.round)}`)
})

test('the floor is lit, and the sun draws lines on it', async () => {
  await goTo(44, FLOOR)
  const [{ median, bright }] = await ada.luminances('water-below', { left: 0.2, top: 0.4, right: 0.7, bottom: 0.9 })
  console.log('luminance of the floor', { median, bright })
  assert.ok(median > 60, `the floor is ${median}`)
  assert.ok(bright > median * 1.12, `the floor is ${median}, and its lines ${bright}`)
})

test('the page had no problems', () => assert.deepEqual(ada.troubles, []))
