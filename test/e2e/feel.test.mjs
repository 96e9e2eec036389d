// What players hear and see of each other: sounds from their side, particles, and themselves from outside. Run as
// browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const FAR = 2 // blocks: what is farther away was made by the other player

let daemon
let ada
let bob

before(async () => {
  daemon = await Daemon.start()
})

after(async () => {
  await Promise.all([ada?.close(), bob?.close()])
  await daemon?.remove()
})

/** Turns a player so that a block is ahead, or on a side. */
function turn(player, [x, , z], side) {
  return player.page.evaluate(
    ([x, z, side]) => {
      const { x: px, y, z: pz } = window.__voxeld.state()
      const [dx, dz] = [x + 0.5 - px, z + 0.5 - pz]
      const [fx, fz] = { ahead: [dx, dz], behind: [-dx, -dz], right: [dz, -dx], left: [-dz, dx] }[side]
      window.__voxeld.lookAt(px + 9 * fx, y + 1, pz + 9 * fz)
    },
    [x, z, side],
  )
}

/** Bob breaks a block while it is on a side of Ada; returns what she heard of it. Louder sounds may drown it: then he breaks another. */
async function breakBeside(side) {
  for (let i = 0; i < 3; i++) {
    const at = await bob.aimAtGround()
    await turn(ada, at, side)
    await ada.nextFrames(2)
    const { bursts } = await ada.state()
    await bob.click('left')
    await ada.untilBlock(at, 0)
    const after = await ada.state()
    const heard = after.sounds.find(
      ({ kind, x, y, z }) => kind === 'break' && [x, y, z].every((v, axis) => Math.floor(v) === at[axis]),
    )
    if (heard) return { at, ...heard, bursts: after.bursts - bursts }
  }
  assert.fail(`Ada hears no block that breaks ${side}`)
}

test('a player hears the steps of another one', async () => {
  ada = await Player.open(daemon.url, 'ada')
  bob = await Player.open(daemon.url, 'bob')
  await ada.play()
  await bob.play()
  await ada.until(() => window.__voxeld.state().others.length === 1)
  const stepsOfBob = (far) => {
    const { x, z, sounds } = window.__voxeld.state()
    return sounds.filter((sound) => sound.kind === 'step' && Math.hypot(sound.x - x, sound.z - z) > far).length
  }
  // the browser opens its output, and loads this part of the page, meanwhile
  for (let i = 0; (await ada.page.evaluate(stepsOfBob, FAR)) === 0; i++) {
    assert.ok(i < 20, 'Ada hears no steps')
    await bob.walk(4)
  }
})

let near // what Ada heard of a block that broke nearby

test('and their edits, from the side where they are', async () => {
  near = await breakBeside('right')
  assert.ok(near.pan > 0.5, `the pan is ${near.pan} on the right`)
  const left = await breakBeside('left')
  assert.ok(left.pan < -0.5, `the pan is ${left.pan} on the left`)
})

test('who looks away sees no particles', async () => {
  assert.equal((await breakBeside('behind')).bursts, 0)
})

test('what is farther away is less loud, and has particles', async () => {
  await bob.walk(8)
  const far = await breakBeside('ahead')
  assert.ok(far.gain > 0 && far.gain < near.gain, `the gain is ${far.gain}, and nearer it was ${near.gain}`)
  assert.ok(far.bursts > 0)
})

test('nothing is heard with the sounds off, nor seen with reduced motion', async () => {
  await ada.page.keyboard.press('KeyN')
  await ada.page.emulateMedia({ reducedMotion: 'reduce' })
  const { sounds, bursts } = await ada.state()
  const at = await bob.aimAtGround()
  await bob.click('left')
  await ada.untilBlock(at, 0)
  const after = await ada.state()
  assert.deepEqual([after.sounds, after.bursts], [sounds, bursts])
  await ada.page.keyboard.press('KeyN')
})

/** Presses the key of the camera, and returns how far it is from Ada's eyes. */
async function changeCamera(mode) {
  await ada.page.keyboard.press('KeyV')
  await ada.until((mode) => window.__voxeld.state().camera.mode === mode, mode)
  await ada.nextFrames(2)
  const { x, y, z, camera } = await ada.state()
  return Math.hypot(camera.x - x, camera.y - y - 1.62, camera.z - z)
}

test('a player sees themselves from behind and from the front, and waves', async () => {
  await ada.page.evaluate(() => {
    const { x, y, z } = window.__voxeld.state()
    window.__voxeld.lookAt(x + 9, y + 1, z + 3)
  })
  const behind = await changeCamera('behind')
  await ada.picture('third-person-behind')
  const front = await changeCamera('front')
  await ada.page.keyboard.press('KeyJ')
  await bob.untilChat('o/')
  await ada.nextFrames(5)
  await ada.picture('third-person-front')
  assert.ok(behind > 1 && front > 1, `the camera is ${behind} blocks behind, and ${front} before them`)
  assert.ok((await changeCamera('first')) < 0.1)
  assert.deepEqual([...ada.troubles, ...bob.troubles], [])
})
