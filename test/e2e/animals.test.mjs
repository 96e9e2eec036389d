// Animals, in a real browser: an owner has sheep born, sees them walk, and removes them. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

let daemon
let ada

before(async () => {
  daemon = await Daemon.start()
  ada = await Player.open(daemon.url, 'ada')
  await ada.play()
})

after(async () => {
  await ada?.close()
  await daemon?.remove()
})

const count = (n) => ada.until((n) => window.__voxeld.state().creatures.length === n, n)

test('whoever may has animals born, which walk, and removes them', async () => {
  await ada.say('/animal sheep 5')
  await ada.until(() => document.body.innerText.includes('/animal is not for the role'))
  await ada.say(`/owner ${await daemon.operate('owner')}`)
  await ada.until(() => document.body.innerText.includes('You own this world now'))
  await ada.say('/animal sheep 5')
  await count(5)
  const born = await ada.page.evaluate(() => window.__voxeld.state().creatures)
  await ada.until((born) => {
    const now = window.__voxeld.state().creatures
    return now.length === 5 && now.every(({ x, z }, i) => Math.hypot(x - born[i].x, z - born[i].z) > 2)
  }, born)
  const { others } = await ada.page.evaluate(() => window.__voxeld.state())
  assert.deepEqual(others, []) // they are no players
  const [first] = await ada.page.evaluate(() => window.__voxeld.state().creatures)
  await ada.page.evaluate(({ x, y, z }) => window.__voxeld.lookAt(x, y + 0.6, z), first)
  await ada.picture('animals')
  await ada.say('/animal remove 100')
  await count(0)
})
