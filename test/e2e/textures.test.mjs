// Texture packs that a player chooses in the menu, and that an operator sets for the world, in a real browser. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Daemon } from './daemon.mjs'
import { STILL, setTimes } from './daytime.mjs'
import { Player } from './player.mjs'

// vite is a dependency of the client's package
const { runnerImport } = createRequire(new URL('../../web/package.json', import.meta.url))('vite')
const GROUND = { left: 0.25, top: 0.6, right: 0.6, bottom: 0.9 }

let daemon
let player
let green // the luminance of the ground as it is built in

before(async () => {
  daemon = await Daemon.start()
})

after(async () => {
  await player?.close()
  await daemon?.remove()
})

async function openSettings() {
  if (await player.page.evaluate(() => document.pointerLockElement !== null))
    await player.page.evaluate(() => document.exitPointerLock())
  await player.page.waitForSelector('.menu')
  await player.page.click('#tab-settings')
}

/** Opens the menu, and gives it a file. */
async function choose(name, buffer) {
  await openSettings()
  await player.page.setInputFiles('.menu .pack input', {
    name,
    mimeType: 'application/zip',
    buffer,
  })
}

/** Returns a pack in which grass is black. */
async function blackPack() {
  const png = await player.page.evaluate(() => {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = 32
    canvas.getContext('2d').fillRect(0, 0, 32, 32)
    return canvas.toDataURL('image/png').split(',')[1]
  })
  const { module } = await runnerImport(fileURLToPath(new URL('../../web/test/zip.ts', import.meta.url)))
  const black = Buffer.from(png, 'base64')
  const blades = Object.fromEntries(['grass_top', 'tall_grass', 'dry_grass'].map((name) => [`pack/${name}.png`, black]))
  return Buffer.from(module.zipOf(blades))
}

test('black grass of 32 pixels, by a zip', async () => {
  const noon = { minutes: 12 * 60, dayMs: STILL }
  player = await Player.open(daemon.url, 'painter', {
    prepare: (page) => setTimes(page, noon),
  })
  await player.play()
  green = await player.medianLuminance('textures-built-in', GROUND)
  await choose('black.zip', await blackPack())
  await player.until(() => document.querySelector('.menu .pack').textContent.includes('black.zip'))
  await player.picture('textures-menu')
  await player.reload()
  await player.nextFrames(3)
  const ground = await player.medianLuminance('textures-black', GROUND)
  console.log('luminance of the ground', { green, ground })
  assert.ok(ground < green / 3, `the ground is ${ground}, and was ${green}`)
})

test('what is no pack is refused in words, and the pack can be removed', async () => {
  await choose('notes.zip', Buffer.from('no zip'))
  await player.until(() => document.querySelector('.menu .pack [role=alert]').textContent.includes('not a zip file'))
  await player.page.click('.menu .pack button:has-text("Remove")')
  await player.reload()
  await player.nextFrames(3)
  const ground = await player.medianLuminance('textures-removed', GROUND)
  assert.ok(Math.abs(ground - green) < 10, `the ground is ${ground}, and was ${green}`)
  assert.deepEqual(player.troubles, [])
})

test("the world's pack is shown from the next load on, unless the player does not want it", async () => {
  const file = join(daemon.dataDir, 'black.zip')
  await writeFile(file, await blackPack())
  await daemon.operate('textures', file)
  await player.reload() // the page is told when it joins
  await player.until(() => document.body.textContent.includes('own textures have changed'))
  await player.reload()
  await player.nextFrames(3)
  const ground = await player.medianLuminance('textures-world', GROUND)
  assert.ok(ground < green / 3, `the ground is ${ground}, and was ${green}`)
  await openSettings()
  await player.page.click('.menu label:has-text("Textures of the world") input')
  await player.reload()
  await player.nextFrames(3)
  const without = await player.medianLuminance('textures-world-off', GROUND)
  assert.ok(Math.abs(without - green) < 10, `the ground is ${without}, and was ${green}`)
  assert.deepEqual(player.troubles, [])
})
