// Building tools, in real browsers: a wall in one gesture, which one key takes back; copies, and blueprints as files. Run as
// browser.test.mjs.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const AIR = 0
const BRICK = 19
const BRICK_KEY = 'Digit7' // its slot in the default hotbar
const LAMP = 20
const POPPY = 32
const LAMP_KEY = 'Digit8'
const [WIDTH, HEIGHT] = [10, 5]

let daemon
let ada
let eve
let wall // rows of places, from below

before(async () => {
  daemon = await Daemon.start()
})

after(async () => {
  await Promise.all([ada?.close(), eve?.close()])
  await daemon?.remove()
})

/**
 * Returns rows of places, from below, in an upright plane in front of the player where only air is, and of which the first place
 * is above a block that the player sees the top of.
 */
async function findSite(player, width, height) {
  const found = await player.until(
    ([width, height]) => {
      const game = window.__voxeld
      const { x, y, z } = game.state()
      const feet = [x, y, z].map(Math.floor)
      for (const far of [3, 4, 2, 5]) {
        for (const [dx, dz] of [
          [0, 1],
          [0, -1],
          [1, 0],
          [-1, 0],
        ]) {
          for (const from of [0, -1, 1, -2, 2].map((shift) => shift - (width >> 1))) {
            for (const dy of [0, 1, -1, 2]) {
              const rows = Array.from({ length: height }, (_, up) =>
                Array.from({ length: width }, (_, i) => [
                  feet[0] + far * dx + (from + i) * dz,
                  feet[1] + dy + up,
                  feet[2] + far * dz + (from + i) * dx,
                ]),
              )
              if (rows.flat().some((at) => game.blockAt(...at) !== 0)) continue
              const [cx, cy, cz] = rows[0][0]
              if (![1, 2, 3, 4, 8, 13, 22].includes(game.blockAt(cx, cy - 1, cz))) continue // no plant
              game.lookAt(cx, cy - 1 + 0.49, cz)
              const aim = game.aim()
              if (aim && aim.x === cx && aim.y === cy - 1 && aim.z === cz && aim.normal[1] === 1) return rows
            }
          }
        }
      }
      return null
    },
    [width, height],
  )
  return found.jsonValue()
}

async function chooseTool(player, name) {
  await player.page.keyboard.press('KeyB')
  await player.page.click(`.build-tools button:has-text("${name}")`)
  await player.until(() => window.__voxeld.state().screen === 'play' && document.pointerLockElement)
  await player.page.mouse.move(480, 300)
}

/** Clicks while the player looks at a place; up is how much above its middle. */
async function clickAt(player, [x, y, z], up = 0) {
  await player.page.evaluate((at) => window.__voxeld.lookAt(...at), [x, y + up, z])
  await player.page.mouse.down()
  await player.page.mouse.up()
}

function untilStage(player, stage) {
  return player.until((stage) => window.__voxeld.state().build?.stage === stage, stage)
}

/** Waits until no work is under way and all edits are answered. */
function untilDone(player) {
  return player.until(() => {
    const { build, pendingEdits } = window.__voxeld.state()
    return build.total === 0 && pendingEdits === 0
  })
}

function untilLine(player, text) {
  return player.until((text) => document.querySelector('.build-bar')?.textContent.includes(text), text)
}

function blocksAt(player, places) {
  return player.page.evaluate((places) => places.map((at) => window.__voxeld.blockAt(...at)), places)
}

test('a wall is one gesture', async () => {
  ada = await Player.open(daemon.url, 'ada')
  await ada.play()
  await ada.stand()
  await ada.page.keyboard.press(BRICK_KEY)
  await ada.page.keyboard.press('KeyB')
  await ada.page.waitForSelector('.build', { state: 'visible' })
  await ada.picture('tools-panel')
  await ada.page.keyboard.press('KeyB')
  await ada.until(() => window.__voxeld.state().screen === 'play')
  await chooseTool(ada, 'Wall')
  wall = await findSite(ada, WIDTH, HEIGHT)
  const before = (await ada.state()).acknowledgedEdits
  await clickAt(ada, wall[0][0], -0.51) // the top of the block below
  await untilStage(ada, 'second')
  await clickAt(ada, wall.at(-1).at(-1))
  await untilStage(ada, 'confirm')
  await ada.until((count) => window.__voxeld.state().build.ghosts === count, WIDTH * HEIGHT)
  await ada.page.evaluate((at) => window.__voxeld.lookAt(...at), wall[2][5])
  await untilLine(ada, '50 blocks')
  await ada.picture('tools-ghost')
  assert.equal((await ada.state()).acknowledgedEdits, before, 'a click at a corner changed a block')
  await ada.page.mouse.down()
  await ada.page.mouse.up()
  await ada.until(() => window.__voxeld.state().build.undo === 1)
  assert.deepEqual(await blocksAt(ada, wall.flat()), Array(WIDTH * HEIGHT).fill(BRICK))
  await ada.picture('tools-wall')
})

test('one key takes it back, and another one builds it again', async () => {
  await ada.page.keyboard.press('Control+KeyZ')
  await ada.until(() => window.__voxeld.state().build.redo === 1)
  assert.deepEqual(await blocksAt(ada, wall.flat()), Array(WIDTH * HEIGHT).fill(AIR))
  await ada.page.keyboard.press('Control+KeyY')
  await ada.until(() => window.__voxeld.state().build.undo === 1)
  await untilDone(ada)
  assert.deepEqual(await blocksAt(ada, wall.flat()), Array(WIDTH * HEIGHT).fill(BRICK))
})

test('Escape leaves the tool', async () => {
  await ada.page.keyboard.press('Escape')
  await ada.until(() => window.__voxeld.state().build.tool === '')
})

test('undo leaves alone what another player has changed since', async () => {
  eve = await Player.open(daemon.url, 'eve')
  await eve.play()
  await eve.stand()
  const [changed, below] = [wall[1][4], wall[0][4]]
  await eve.untilBlock(changed, BRICK)
  const aimAt = ([x, y, z]) =>
    eve.until(
      ([x, y, z]) => {
        window.__voxeld.lookAt(x, y, z)
        const aim = window.__voxeld.aim()
        return aim && aim.x === x && aim.y === y && aim.z === z
      },
      [x, y, z],
    )
  await aimAt(changed)
  await eve.click('left')
  await eve.page.keyboard.press(LAMP_KEY)
  await eve.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y + 0.49, z), below)
  await eve.until(() => window.__voxeld.aim()?.normal[1] === 1)
  await eve.click('right')
  assert.equal(await eve.blockAt(changed), LAMP)
  await ada.untilBlock(changed, LAMP)
  await eve.close()
  eve = null

  await ada.page.keyboard.press('Control+KeyZ')
  await ada.until(() => window.__voxeld.state().build.redo === 1)
  await untilLine(ada, 'Undone: 49 blocks. 1 left alone: changed since.')
  const rest = wall.flat().filter((at) => at.join() !== changed.join())
  assert.deepEqual(await blocksAt(ada, rest), Array(rest.length).fill(AIR))
  assert.equal(await ada.blockAt(changed), LAMP)
  await ada.page.keyboard.press('Control+Shift+KeyZ')
  await ada.until(() => window.__voxeld.state().build.undo === 1)
  assert.deepEqual(await blocksAt(ada, rest), Array(rest.length).fill(BRICK))
})

test('a copy becomes a file, and the file a copy, which is turned and put elsewhere', async () => {
  await chooseTool(ada, 'Copy')
  await clickAt(ada, wall[0][3])
  await untilStage(ada, 'second')
  await clickAt(ada, wall[1][5])
  await untilStage(ada, 'confirm')
  await ada.until(() => window.__voxeld.state().build.ghosts === 6)
  await ada.picture('tools-copy')
  await ada.page.mouse.down()
  await ada.page.mouse.up()
  await ada.until(() => window.__voxeld.state().build.tool === 'paste')

  await ada.page.keyboard.press('KeyB')
  const [download] = await Promise.all([ada.page.waitForEvent('download'), ada.page.click('text=Save copy')])
  const text = await readFile(await download.path(), 'utf8')
  const blueprint = JSON.parse(text)
  assert.equal(blueprint.format, 'voxeld blueprint')
  assert.deepEqual([...blueprint.palette].sort(), [BRICK, LAMP])
  const open = (content) =>
    ada.page.setInputFiles('.build input[type=file]', {
      name: 'b.json',
      mimeType: 'application/json',
      buffer: Buffer.from(content),
    })
  await open('{"format":"something else"}')
  await ada.until(() => [...document.querySelectorAll('.toast')].some((t) => t.textContent.includes('not a blueprint')))
  await open(text)
  await ada.until(() => window.__voxeld.state().screen === 'play' && window.__voxeld.state().build.tool === 'paste')

  const site = await findSite(ada, 1, 2)
  const [x, y, z] = site[0][0]
  const alongX = blueprint.sides[0] === 3
  await ada.page.mouse.wheel(0, 100) // a quarter turn
  await clickAt(ada, [x, y, z], -0.51)
  await untilStage(ada, 'confirm')
  await ada.picture('tools-paste')
  await ada.page.mouse.down()
  await ada.page.mouse.up()
  await ada.until(() => window.__voxeld.state().build.undo === 2)
  const [dx, dz] = alongX ? [0, 1] : [1, 0]
  const placed = await blocksAt(ada, [
    [x, y, z],
    [x, y + 1, z],
  ])
  assert.deepEqual(placed, [BRICK, LAMP]) // the middle column
  for (const side of [-1, 1]) {
    const there = await ada.blockAt([x + side * dx, y, z + side * dz])
    assert.notEqual(there, AIR) // a brick, or what was there before
  }
})

test('the inventory is searched', async () => {
  await ada.page.keyboard.press('Escape') // leaves the tool
  await ada.until(() => window.__voxeld.state().build.tool === '')
  await ada.page.keyboard.press('KeyE')
  await ada.page.fill('.inventory input', 'nature leaves')
  await ada.until(() => {
    const found = [...document.querySelectorAll('.inventory .slot:not(.hidden) img')].map((image) => image.alt)
    return found.length > 1 && found.every((name) => name.toLowerCase().includes('leaves'))
  })
  await ada.page.fill('.inventory input', 'poppy')
  await ada.picture('tools-inventory')
  await ada.page.keyboard.press('Enter')
  await ada.until((block) => window.__voxeld.state().hotbar[window.__voxeld.state().hotbarSlot] === block, POPPY)
  await ada.page.keyboard.press('Escape')
  await ada.until(() => window.__voxeld.state().screen === 'play')
})

test('work that waits for its player is shown while they hold a tool', async () => {
  const { x, z } = await ada.state()
  const [west, north] = [Math.floor(x), Math.floor(z)]
  await ada.say(`//pos1 ${west} 110 ${north}`)
  await ada.say(`//pos2 ${west + 2} 110 ${north + 2}`)
  await ada.say('//fill gold_block')
  await untilLine(ada, '9 blocks out of reach: go nearer.')
  await chooseTool(ada, 'Wall')
  await ada.until(() => window.__voxeld.state().build.tool === 'wall')
  await untilLine(ada, '9 blocks out of reach: go nearer.')
  await ada.until(() => window.__voxeld.state().build.ghosts >= 9)
  await ada.picture('tools-waiting')
  await ada.page.keyboard.press('Escape') // the tool
  await ada.until(() => window.__voxeld.state().build.tool === '')
  await ada.say('//stop')
  await untilDone(ada)
})

test('who may fills and takes back thousands of blocks with a command, as far as they see', async () => {
  await daemon.operate('set', 'bulk', 'builder', '65536', '262144')
  await ada.until(() => window.__voxeld.state().bulk === 65536)
  const { x, z } = await ada.state()
  const low = [Math.floor(x) - 20, 100, Math.floor(z) - 20]
  const high = [low[0] + 39, 109, low[2] + 39]
  const places = Array.from({ length: 16_000 }, (_, i) => [
    low[0] + (i % 40),
    low[1] + (Math.floor(i / 40) % 10),
    low[2] + Math.floor(i / 400),
  ])
  const count = async (block) => (await blocksAt(ada, places)).filter((there) => there === block).length
  await ada.until((places) => places.every((at) => window.__voxeld.blockAt(...at) === 0), places)
  await ada.say(`//pos1 ${low.join(' ')}`)
  await ada.say(`//pos2 ${high.join(' ')}`)
  await ada.say('//fill gold_block')
  await untilLine(ada, 'Built: 16,000 blocks.')
  await ada.picture('tools-bulk')
  assert.equal(await count(AIR), 0)
  await ada.say('//replace gold_block no_such_block')
  await ada.until(() => document.body.textContent.includes('There is no block no_such_block.'))
  await ada.say('//undo')
  await untilLine(ada, 'Undone: 16,000 blocks.')
  assert.equal(await count(AIR), 16_000)
})

test('the page had no errors', () => {
  assert.deepEqual(ada.troubles, [])
})
