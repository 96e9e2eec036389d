// Night: how light it is, with and without a lamp in the hand. And rain. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Daemon, HILLS } from './daemon.mjs'
import { STILL, setTimes } from './daytime.mjs'
import { Player } from './player.mjs'

// vite is a dependency of the client's package
const { runnerImport } = createRequire(new URL('../../web/package.json', import.meta.url))('vite')
const LAMP_SLOT = 7 // in the default hotbar

let daemon
let player
let ground // the luminance of the ground at midnight
const times = { minutes: 12 * 60, dayMs: STILL }

before(async () => {
  daemon = await Daemon.start(null, [], HILLS)
})

after(async () => {
  await player?.close()
  await daemon?.remove()
})

/** The ground before the player. */
const GROUND = { left: 0.25, top: 0.6, right: 0.75, bottom: 1 }

async function at(time, name) {
  times.minutes = time
  await player.reload()
  await player.nextFrames(3)
  return player.medianLuminance(name)
}

test('land can be seen at midnight, and a lamp in the hand lights it', async () => {
  player = await Player.open(daemon.url, 'nightly', { prepare: (page) => setTimes(page, times) })
  await player.play()
  const noon = await player.medianLuminance('night-noon')
  const dusk = await at(18.2 * 60, 'night-dusk')
  const midnight = await at(0, 'night-midnight')
  ground = await player.medianLuminance('night-midnight', GROUND)
  await player.page.keyboard.press(`Digit${LAMP_SLOT + 1}`)
  await player.nextFrames(10) // until the hand is up
  const lamp = await player.medianLuminance('night-lamp', GROUND)
  console.log('median luminance', { noon, dusk, midnight, ground, lamp })
  assert.ok(midnight >= 45, `the median is ${midnight} at midnight`)
  assert.ok(noon > dusk && dusk > midnight, `it is ${noon} at noon, ${dusk} at dusk, ${midnight} at midnight`)
  assert.ok(lamp > ground + 15, `the ground is ${ground}, and ${lamp} with a lamp`)
})

test('the brightness is a setting', async () => {
  await player.page.keyboard.press('Digit1')
  await player.page.evaluate(() => document.exitPointerLock())
  await player.page.click('#tab-settings')
  await player.page.fill('.menu input[aria-label=Brightness]', '1.6')
  await player.page.click('.menu button.primary')
  await player.nextFrames(10)
  const bright = await player.medianLuminance('night-bright', GROUND)
  assert.ok(bright > ground + 15, `the ground was ${ground}, and is ${bright}`)
  assert.deepEqual(player.troubles, [])
})

/** Returns a length of the day with which it pours now, and goes on for some minutes. */
async function rainyDay(world) {
  const { module } = await runnerImport(fileURLToPath(new URL('../../web/src/world/weather.ts', import.meta.url)))
  const now = Date.now()
  for (let ms = 3_600_000; ; ms += 60_000)
    if ([0, 180_000].every((later) => module.rainAt(world, (now + later) / ms) > 0.9)) return ms
}

test('it rains, and it is darker, unless the player does without', async () => {
  times.dayMs = await rainyDay((await player.state()).world)
  const weather = (on) =>
    player.page.evaluate((weather) => {
      const stored = JSON.parse(localStorage.getItem('voxeld.settings'))
      localStorage.setItem('voxeld.settings', JSON.stringify({ ...stored, brightness: 1, weather }))
    }, on)
  await weather(true)
  times.minutes = 12 * 60
  await player.reload()
  await player.until(() => window.__voxeld.state().raining > 0.7 && window.__voxeld.state().drops > 0)
  const rain = await player.medianLuminance('rain', GROUND)
  await weather(false)
  await player.reload()
  await player.nextFrames(3)
  const dry = await player.medianLuminance('rain-off', GROUND)
  console.log('median luminance', { rain, dry })
  const { raining, drops } = await player.state()
  assert.deepEqual([raining, drops], [0, 0])
  assert.ok(rain < dry - 15, `the ground is ${rain} in the rain, and ${dry} without`)
  assert.deepEqual(player.troubles, [])
})

/** Fills a box of blocks, which is far above the land. */
async function fill([x, y, z], [x2, y2, z2], block) {
  await player.say(`//pos1 ${x} ${y} ${z}`)
  await player.say(`//pos2 ${x2} ${y2} ${z2}`)
  await player.say(`//fill ${block}`)
  await player.until((to) => window.__voxeld.blockAt(...to) > 0, [x2, y2, z2])
}

test('at noon, a ceiling is not black within 15 blocks of the open sky', async () => {
  await player.register()
  await player.say(`/owner ${await daemon.operate('owner')}`)
  await player.untilChat('You own this world now')
  await player.page.keyboard.press('KeyF')
  const [x, z] = [(await player.state()).x, (await player.state()).z].map(Math.floor)
  await player.say(`/tp ${x} 112 ${z}`)
  await player.until(() => window.__voxeld.state().y > 110)
  await fill([x - 13, 111, z - 13], [x + 13, 111, z + 13], 'planks')
  await fill([x - 13, 115, z - 13], [x + 13, 115, z + 13], 'stone')
  await player.page.evaluate(([x, z]) => window.__voxeld.lookAt(x + 3, 115, z), [x, z]) // 10 blocks from the edge
  await player.until(() => window.__voxeld.state().meshBacklog === 0)
  await player.nextFrames(3)
  const ceiling = await player.medianLuminance('night-ceiling', { left: 0.3, top: 0.3, right: 0.7, bottom: 0.7 })
  console.log('luminance of the ceiling', ceiling)
  assert.ok(ceiling >= 32, `the ceiling is ${ceiling}`)
  assert.deepEqual(player.troubles, [])
})
