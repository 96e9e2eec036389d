// Blocks of other shapes, in a real browser: a player builds steps, walks up without jumping, and finds them again. Run as
// browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const AIR = 0
const STONE = 1
const WATER = 5
const PLANK_SLAB = 113
const PLANK_STAIRS = 115 // and the three ids after it: +x −x +z −z
const TORCH = 177
const DOOR = 186
const GATE = 210
const TRAPDOOR = 234
const PLANK_CORNERS = 306 // outer ones, inner ones, and straight stairs upside down, four each
const HOTBAR = [STONE, PLANK_SLAB, PLANK_STAIRS, TORCH, DOOR, GATE, TRAPDOOR, WATER, STONE]
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

/** Returns the block that is so many blocks ahead of where she began, up, and to the right. */
function ahead(far, up, right = 0) {
  const { x, y, z, side } = site
  const [dx, dz] = SIDES[side]
  return [x + far * dx - right * dz, y + up, z + far * dz + right * dx]
}

/** Clicks, and waits until all edits are acknowledged. Both events at once: a button that is held on a busy machine places more. */
async function place(button = 2) {
  const { acknowledgedEdits } = await ada.state()
  await ada.page.evaluate((button) => {
    const click = { button, bubbles: true, cancelable: true }
    const canvas = document.querySelector('canvas')
    canvas.dispatchEvent(new MouseEvent('mousedown', click))
    canvas.dispatchEvent(new MouseEvent('mouseup', click))
  }, button)
  await ada.until((before) => window.__voxeld.state().acknowledgedEdits > before, acknowledgedEdits)
  await ada.settled()
}

/** Places the block of a slot onto the block that is so many blocks ahead, up, and to the right; near and aside are added to where she aims. */
async function placeOn(slot, far, up, right = 0, near = 0, aside = 0) {
  await ada.page.keyboard.press(`Digit${slot + 1}`)
  const [x, y, z] = ahead(far, up, right)
  const at = ahead(far - near, up, right + aside) // the middle of its top
  await ada.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y + 0.5, z), at)
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

/**
 * Returns a place with four blocks of level, free ground in one direction, and to the right of it if it is wide; null if there is none
 * where she stands. No stairs that stand already, at the given position, are beside it: they would make corners with others.
 */
function findSite({ wide, stairs }) {
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
  const side = sides.findIndex(([dx, dz]) => {
    const place = (far, right) => [fx + far * dx - right * dz, fz + far * dz + right * dx]
    const isFree = (far, right) => {
      const [x, z] = place(far, right)
      const at = (up) => window.__voxeld.blockAt(x, fy + up, z)
      return ground(at(-1)) && [0, 1, 2, 3].every((up) => free(at(up)))
    }
    const isBesideStairs = [1, 2, 3, 4].some((far) =>
      [0, 1, 2, 3].some((right) => place(far, right).join() === `${stairs?.[0]},${stairs?.[2]}`),
    )
    return !isBesideStairs && [1, 2, 3].every((far) => (wide ? [0, 1, 2] : [0]).every((right) => isFree(far, right)))
  })
  return side < 0 ? null : { x: fx, y: fy, z: fz, side }
}

async function chooseSite(wide) {
  const stairs = site && ahead(2, 0)
  site = null
  for (let tries = 0; tries < 30 && !site; tries++) {
    await ada.stand()
    site = await ada.page.evaluate(findSite, { wide, stairs })
    if (!site) await ada.walk(2)
  }
  assert.ok(site, 'there is no level ground')
}

test('builds steps that face her, and walks up without jumping', async () => {
  await chooseSite(false)
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
})

test('a gate and a trapdoor open, rows of stairs meet in a corner, and water comes and goes', async () => {
  await ada.walk(3)
  await chooseSite(true)
  const { side } = site
  const right = [2, 3, 1, 0][side]
  const click = async (at, before, after) => {
    await ada.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y, z), at)
    await place()
    assert.notEqual(before, after)
    assert.equal(await ada.blockAt(at.map(Math.floor)), after)
  }
  await placeOn(2, 3, -1, 2)
  await placeOn(2, 2, -1, 2, 0.45, 0.45) // she looks more to the right than ahead
  assert.equal(await ada.blockAt(ahead(2, 0, 2)), PLANK_STAIRS + right)
  assert.equal(await ada.blockAt(ahead(3, 0, 2)), PLANK_CORNERS + 4 + side)
  await placeOn(0, 3, -1)
  await placeOn(0, 3, 0)
  await placeOn(5, 2, -1)
  assert.equal(await ada.blockAt(ahead(2, 0)), GATE + side)
  await ada.picture('gate')
  await click(ahead(2, 0.2), GATE + side, GATE + side + 4)
  await ada.page.keyboard.press('Digit7')
  await ada.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y, z), ahead(2.5, 1.3)) // the upper half of the stone
  await place()
  assert.equal(await ada.blockAt(ahead(2, 1)), TRAPDOOR + 4 + side)
  await ada.picture('trapdoor')
  await placeOn(7, 1, -1, 1)
  assert.equal(await ada.blockAt(ahead(1, 0, 1)), WATER)
  await ada.picture('water')
  await ada.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y, z), ahead(1, 0.4, 1))
  await ada.until(() => window.__voxeld.aim()?.normal[1] === 1)
  await place(0)
  assert.equal(await ada.blockAt(ahead(1, 0, 1)), AIR)
  assert.deepEqual(ada.troubles, [])
})
