// The past of a place, in real browsers: ada builds, eve breaks a part of it, and bob watches both. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const AIR = 0
const BRICK = 19
const BRICK_KEY = 'Digit7' // its slot in the default hotbar

let node
let eve
let bob
const tower = [] // its bricks, from below

before(async () => {
  node = await Daemon.start()
})

after(async () => {
  await Promise.all([eve?.close(), bob?.close()])
  await node?.remove()
})

async function joined(name) {
  const player = await Player.open(node.url, name)
  await player.play()
  await player.register()
  await player.stand()
  return player
}

/** Aims at a block, or at its upper side, and clicks. */
async function click(player, button, at, upper) {
  await player.until(
    ([[x, y, z], upper]) => {
      window.__voxeld.lookAt(x, upper ? y + 0.49 : y, z)
      const aim = window.__voxeld.aim()
      return aim && aim.x === x && aim.y === y && aim.z === z && (!upper || aim.normal[1] === 1)
    },
    [at, upper],
  )
  await player.click(button)
}

const shown = () => Promise.all(tower.map((at) => bob.blockAt(at)))

/** Waits until bob's page shows the moment after so many changes. */
const untilMoment = (at) =>
  bob.until((at) => {
    const { past } = window.__voxeld.state()
    return past && !past.loading && !past.playing && past.at === at
  }, at)

test('ada builds a tower, and eve breaks its top', async () => {
  const ada = await joined('ada')
  const [x, y, z] = await ada.aimAtGround()
  tower.push([x, y + 1, z], [x, y + 2, z])
  await ada.page.keyboard.press(BRICK_KEY)
  await click(ada, 'right', [x, y, z], true)
  await click(ada, 'right', tower[0], true)
  assert.deepEqual(await Promise.all(tower.map((at) => ada.blockAt(at))), [BRICK, BRICK])
  await ada.close()
  assert.deepEqual(ada.troubles, [])

  eve = await joined('eve')
  await eve.untilBlock(tower[1], BRICK)
  await click(eve, 'left', tower[1], false)
})

test('bob moves through the past by keys', async () => {
  bob = await joined('bob')
  await bob.untilBlock(tower[0], BRICK)
  await bob.page.evaluate((at) => window.__voxeld.lookAt(...at), tower[0])
  await bob.page.keyboard.press('KeyL')
  await untilMoment(3)
  const line = () => bob.page.textContent('.past-text b')
  assert.equal(await line(), 'eve broke Brick')
  assert.deepEqual(await shown(), [BRICK, AIR])

  const { yaw } = await bob.state()
  await bob.page.mouse.move(400, 200)
  await bob.page.mouse.down()
  await bob.page.mouse.move(420, 200)
  await bob.page.mouse.up()
  await bob.until((yaw) => window.__voxeld.state().yaw !== yaw, yaw) // a drag beside the bar turns the camera
  await bob.page.focus('.past-controls input')

  await bob.page.keyboard.press('Home')
  await untilMoment(0)
  assert.equal(await line(), 'Before the first change')
  assert.deepEqual(await shown(), [AIR, AIR])
  await bob.page.keyboard.press('ArrowRight')
  await untilMoment(1)
  assert.deepEqual(await shown(), [BRICK, AIR])
  await bob.page.keyboard.press('ArrowRight')
  await untilMoment(2)
  assert.equal(await line(), 'ada placed Brick')
  assert.match(await bob.page.getAttribute('.past-bar input', 'aria-valuetext'), /^ada placed Brick, just now/)
  assert.deepEqual(await shown(), [BRICK, BRICK])
  await bob.until(() => window.__voxeld.state().meshBacklog === 0)
  await bob.nextFrames(2)
  await bob.picture('past')
})

test('the time-lapse ends now, and changes of others are there after it', async () => {
  await click(eve, 'left', tower[0], false)
  assert.equal(await bob.blockAt(tower[1]), BRICK)
  await bob.page.keyboard.press('End')
  await untilMoment(3)
  const { at, playing } = await bob.page.$eval('.past-controls button', (play) => {
    play.click()
    return window.__voxeld.state().past
  })
  assert.deepEqual({ at, playing }, { at: 0, playing: true })
  await untilMoment(3)
  await bob.page.focus('.past-controls input')
  await bob.page.keyboard.press('Home')
  await untilMoment(0)
  await bob.page.keyboard.press('Escape')
  await bob.until(() => window.__voxeld.state().screen === 'play')
  for (const at of tower) await bob.untilBlock(at, AIR)
  assert.equal((await bob.state()).pendingEdits, 0)
  assert.equal((await bob.state()).acknowledgedEdits, 0, 'watching changed the world')

  await bob.say('/past') // its history has the last change, too
  await untilMoment(4)
  await bob.page.keyboard.press('ArrowLeft')
  await untilMoment(3)
  assert.deepEqual(await shown(), [BRICK, AIR])
  await bob.page.click('.past-bar > button')
  await bob.until(() => window.__voxeld.state().screen === 'play')
  assert.deepEqual(await shown(), [AIR, AIR])
})

test('the pages had no errors', () => {
  assert.deepEqual([...eve.troubles, ...bob.troubles], [])
})
