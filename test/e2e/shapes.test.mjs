// Blocks of other shapes, in a real browser: a player builds steps, walks up without jumping, and finds them again. Run as
// browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const STONE = 1
const PLANK_SLAB = 113
const PLANK_STAIRS = 115 // and the three ids after it: +x −x +z −z
const TORCH = 177
const DOOR = 186
const HOTBAR = [STONE, PLANK_SLAB, PLANK_STAIRS, TORCH, DOOR, STONE, STONE, STONE, STONE]
const SIDES = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
]

let daemon
let ada
let site // where she builds: the block of her feet, and the direction

before(async () => {
  daemon = await Daemon.start()
  ada = await Player.open(daemon.url, 'ada', { settings: { hotbar: HOTBAR } })
  await ada.play()
})

after(async () => {
  await ada?.close()
  await daemon?.remove()
})

/** Returns the block that is so many blocks ahead of where she began, and up. */
function ahead(far, up) {
  const { x, y, z, side } = site
  return [x + far * SIDES[side][0], y + up, z + far * SIDES[side][1]]
}

/** Clicks, and waits until all edits are acknowledged. Both events at once: a button that is held on a busy machine places more. */
async function place() {
  const { acknowledgedEdits } = await ada.state()
  await ada.page.evaluate(() => {
    const right = { button: 2, bubbles: true, cancelable: true }
    const canvas = document.querySelector('canvas')
    canvas.dispatchEvent(new MouseEvent('mousedown', right))
    canvas.dispatchEvent(new MouseEvent('mouseup', right))
  })
  await ada.until((before) => window.__voxeld.state().acknowledgedEdits > before, acknowledgedEdits)
  await ada.settled()
}

/** Places the block of a slot onto the block that is so many blocks ahead, and up. */
async function placeOn(slot, far, up) {
  await ada.page.keyboard.press(`Digit${slot + 1}`)
  const [x, y, z] = ahead(far, up)
  await ada.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y + 0.5, z), [x, y, z]) // the middle of its top
  await ada.until(
    ([slot, x, y, z]) => {
      const aim = window.__voxeld.aim()
      return (
        window.__voxeld.state().hotbarSlot === slot &&
        aim &&
        aim.x === x &&
        aim.y === y &&
        aim.z === z &&
        aim.normal[1] === 1
      )
    },
    [slot, x, y, z],
  )
  await place()
}

/** Returns a place with four blocks of level, free ground in one direction; null if there is none where she stands. */
function findSite() {
  const { x, y, z, onGround } = window.__voxeld.state()
  if (!onGround) return null
  const [fx, fy, fz] = [x, y, z].map((v) => Math.floor(v + 0.01))
  const free = (block) => block === 0
  const ground = (block) => [1, 2, 3, 4, 8, 13, 22].includes(block)
  const sides = [
    [1, 0],
    [-1, 0],
    [0, 1],
    [0, -1],
  ]
  const side = sides.findIndex(([dx, dz]) =>
    [1, 2, 3].every((far) => {
      const at = (up) => window.__voxeld.blockAt(fx + far * dx, fy + up, fz + far * dz)
      return ground(at(-1)) && [0, 1, 2, 3].every((up) => free(at(up)))
    }),
  )
  return side < 0 ? null : { x: fx, y: fy, z: fz, side }
}

test('builds steps that face her, and walks up without jumping', async () => {
  for (let tries = 0; tries < 20 && !site; tries++) {
    await ada.stand()
    site = await ada.page.evaluate(findSite)
    if (!site) await ada.walk(2)
  }
  assert.ok(site, 'there is no level ground')
  await placeOn(0, 3, -1) // a wall, so that she stays on the steps
  await placeOn(0, 3, 0)
  await placeOn(2, 2, -1)
  await placeOn(1, 1, -1)
  assert.equal(await ada.blockAt(ahead(2, 0)), PLANK_STAIRS + site.side)
  assert.equal(await ada.blockAt(ahead(1, 0)), PLANK_SLAB)
  await ada.picture('steps')
  await ada.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y + 1, z), ahead(3, 0))
  await ada.page.keyboard.down('KeyW')
  await ada.until((y) => window.__voxeld.state().y >= y, site.y + 0.99)
  await ada.page.keyboard.up('KeyW')
  await ada.stand()
  const { x, y, z } = await ada.state()
  assert.ok(Math.abs(y - site.y - 1) < 0.01, `she stands at ${y}, not on the stairs at ${site.y + 1}`)
  assert.deepEqual([Math.floor(x), Math.floor(z)], [ahead(2, 0)[0], ahead(2, 0)[2]])
})

test('the steps are there after a reload, and she still stands on them', async () => {
  await ada.reload()
  assert.equal(await ada.blockAt(ahead(2, 0)), PLANK_STAIRS + site.side)
  assert.equal(await ada.blockAt(ahead(1, 0)), PLANK_SLAB)
  const { y } = await ada.state()
  assert.ok(Math.abs(y - site.y - 1) < 0.05, `she stands at ${y}`)
})

test('puts up a door, which opens and closes', async () => {
  await placeOn(4, 3, 1)
  const halves = [ahead(3, 2), ahead(3, 3)]
  const states = () => Promise.all(halves.map((at) => ada.blockAt(at)))
  assert.deepEqual(await states(), [DOOR + site.side, DOOR + site.side])
  const [x, y, z] = halves[0]
  const [dx, dz] = SIDES[site.side]
  // a closed door is seen anywhere, an open one on the left
  for (const [at, open] of [
    [[x, y, z], 4],
    [[x + 0.4 * dz, y, z - 0.4 * dx], 0],
  ]) {
    await ada.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y, z), at)
    await place()
    await ada.until(
      ([halves, block]) => halves.every((at) => window.__voxeld.blockAt(...at) === block),
      [halves, DOOR + site.side + open],
    )
  }
  assert.deepEqual(ada.troubles, [])
})
