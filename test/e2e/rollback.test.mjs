// A griefer's damage is undone, in real browsers on two nodes: eve breaks ada's wall, and ada asks who it was, bans her, and rolls her changes
// back. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const AIR = 0
const BRICK = 19
const BRICK_KEY = 'Digit7' // its slot in the default hotbar
const LAMP = 20
const LAMP_KEY = 'Digit8'

const nodes = []
let ada
let eve
let foot // the lower bricks of the wall
let top // the upper ones

before(async () => {
  nodes.push(await Daemon.start())
  nodes.push(await Daemon.start(nodes[0]))
})

after(async () => {
  await Promise.all([ada?.close(), eve?.close()])
  for (const node of nodes) await node.remove()
})

const above = ([x, y, z]) => [x, y + 1, z]

/** Returns four blocks of the ground in a row, in front of the player, of which they see the tops. */
async function findRow(player) {
  const found = await player.until(() => {
    const { x, y, z } = window.__voxeld.state()
    const feet = [x, y, z].map(Math.floor)
    for (const far of [3, 4]) {
      for (const [dx, dz] of [
        [0, 1],
        [0, -1],
        [1, 0],
        [-1, 0],
      ]) {
        for (const dy of [-1, 0, -2]) {
          const row = [-2, -1, 0, 1].map((side) => [
            feet[0] + far * dx + side * dz,
            feet[1] + dy,
            feet[2] + far * dz + side * dx,
          ])
          const fits = row.every(([x, y, z]) => {
            window.__voxeld.lookAt(x, y + 0.49, z)
            const aim = window.__voxeld.aim()
            return (
              aim?.x === x &&
              aim.y === y &&
              aim.z === z &&
              aim.normal[1] === 1 &&
              window.__voxeld.blockAt(x, y + 2, z) === 0
            )
          })
          if (fits) return row
        }
      }
    }
    return null
  })
  return found.jsonValue()
}

/** Aims at a block, or at its upper side. */
function aimAt(player, at, upper) {
  return player.until(
    ([[x, y, z], upper]) => {
      window.__voxeld.lookAt(x, upper ? y + 0.49 : y, z)
      const aim = window.__voxeld.aim()
      return aim && aim.x === x && aim.y === y && aim.z === z && (!upper || aim.normal[1] === 1)
    },
    [at, upper],
  )
}

async function placeOn(player, at) {
  await aimAt(player, at, true)
  await player.click('right')
}

async function breakBlock(player, at) {
  await aimAt(player, at, false)
  await player.click('left')
}

async function blocksAt(player, places) {
  return Promise.all(places.map((at) => player.blockAt(at)))
}

test('ada builds a wall, and eve breaks it', async () => {
  ada = await Player.open(nodes[1].url, 'ada')
  await ada.play()
  await ada.register()
  await nodes[0].operate('role', 'ada', 'moderator')
  await ada.stand()
  const row = await findRow(ada)
  foot = row.map(above)
  top = foot.map(above)
  await ada.page.keyboard.press(BRICK_KEY)
  for (const at of [...row, ...foot]) await placeOn(ada, at)
  assert.deepEqual(await blocksAt(ada, [...foot, ...top]), Array(8).fill(BRICK))

  eve = await Player.open(nodes[0].url, 'eve')
  await eve.play()
  await eve.register()
  await eve.stand()
  for (const at of top) {
    await eve.untilBlock(at, BRICK)
    await breakBlock(eve, at)
  }
  for (const at of top) await ada.untilBlock(at, AIR)
  await ada.page.keyboard.press(LAMP_KEY)
  await placeOn(ada, foot[0]) // ada goes on building
})

test('ada asks who changed a block, by a click', async () => {
  const { acknowledgedEdits } = await ada.state()
  await ada.say('/inspect')
  await ada.until(() => window.__voxeld.state().inspecting && window.__voxeld.state().screen === 'play')
  await aimAt(ada, foot[2], true)
  await ada.page.mouse.down({ button: 'right' })
  await ada.page.mouse.up({ button: 'right' })
  await ada.untilChat(' eve: brick → air')
  await ada.untilChat(' ada: natural → brick')
  await ada.picture('inspect')
  assert.deepEqual(await blocksAt(ada, [foot[2], top[2]]), [BRICK, AIR])
  assert.equal((await ada.state()).acknowledgedEdits, acknowledgedEdits, 'a click changed a block')
  await ada.page.keyboard.press('KeyI')
  await ada.until(() => !window.__voxeld.state().inspecting)
})

test('ada bans eve, sees what a rollback would change, and orders it', async () => {
  await ada.say('/ban eve griefing')
  await ada.untilChat('eve is banned')
  await ada.say('/rollback eve 1h 30')
  await ada.page.waitForSelector('.rollback canvas')
  assert.equal(await ada.page.textContent('.rollback h2'), 'Undo 3 changes of eve?')
  await ada.page.keyboard.press('Escape')
  await ada.until(() => window.__voxeld.state().screen === 'play')
  assert.deepEqual(await blocksAt(ada, top), [LAMP, AIR, AIR, AIR])

  await ada.say('/rollback eve 1h 30')
  await ada.page.waitForSelector('.rollback canvas')
  await ada.until(() => {
    const canvas = document.querySelector('.rollback canvas')
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    let red = 0
    for (let i = 0; i < data.length; i += 4) red += data[i] > 240 && data[i + 1] < 90 && data[i + 2] < 80
    return red > 100
  })
  await ada.until(() => window.__voxeld.state().mapTiles > 0)
  await ada.picture('rollback')
  await ada.page.click('text=Undo them')
  for (const at of top.slice(1)) await ada.untilBlock(at, BRICK)
  await ada.untilChat('is complete: 3 blocks changed back.')
  assert.deepEqual(await blocksAt(ada, [...foot, ...top]), [...Array(4).fill(BRICK), LAMP, BRICK, BRICK, BRICK])
  await ada.picture('rollback-done')
})

test('/undo takes the rollback back', async () => {
  await ada.say('/undo')
  for (const at of top.slice(1)) await ada.untilBlock(at, AIR)
  assert.deepEqual(await blocksAt(ada, [...foot, ...top]), [...Array(4).fill(BRICK), LAMP, AIR, AIR, AIR])
})

test('the pages had no errors', () => {
  assert.deepEqual([...ada.troubles, ...eve.troubles], [])
})
