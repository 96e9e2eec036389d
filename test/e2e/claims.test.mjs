// Claims, in real browsers on two nodes: ada claims land by two clicks, and eve is shown its border and refused, until she is trusted. Run as
// browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const AIR = 0

const nodes = []
let ada
let eve
let spot // a block of the ground in the claim
let middle // where ada stood

before(async () => {
  nodes.push(await Daemon.start())
  nodes.push(await Daemon.start(nodes[0]))
})

after(async () => {
  await Promise.all([ada?.close(), eve?.close()])
  for (const node of nodes) await node.remove()
})

/** Waits until the line at the top of the screen contains a text. */
function untilLine(player, text) {
  return player.until((text) => {
    const line = document.querySelector('.claim-line')
    return !line.classList.contains('old') && line.textContent.includes(text)
  }, text)
}

function untilToast(player, text) {
  return player.until(
    (text) => [...document.querySelectorAll('.toast')].some((t) => t.textContent.includes(text)),
    text,
  )
}

/** Turns towards a place on the ground that is so far away, and clicks; returns the place. */
async function chooseCorner(player, dx, dz) {
  await player.page.evaluate(
    ([dx, dz]) => {
      const { x, y, z } = window.__voxeld.state()
      window.__voxeld.lookAt(Math.floor(x) + dx, Math.floor(y) - 1, Math.floor(z) + dz)
    },
    [dx, dz],
  )
  const { frames } = await player.state()
  await player.until((frames) => window.__voxeld.state().frames > frames + 1, frames)
  await player.page.mouse.down()
  await player.page.mouse.up()
}

test('a claim is chosen by two clicks', async () => {
  ada = await Player.open(nodes[0].url, 'ada')
  await ada.play()
  await ada.stand()
  middle = await ada.state()
  await ada.say('/claim harbour')
  await untilLine(ada, 'Choose one corner: Left click / Q. Right click / X cancels.')
  const before = (await ada.state()).acknowledgedEdits
  await chooseCorner(ada, -4, -4)
  await ada.until(() => window.__voxeld.state().choosing === 'second')
  await ada.page.evaluate(() => {
    const { x, y, z } = window.__voxeld.state()
    window.__voxeld.lookAt(Math.floor(x) + 4, Math.floor(y) - 1, Math.floor(z) + 4)
  })
  await untilLine(ada, 'blocks')
  await ada.picture('claim-choosing')
  await chooseCorner(ada, 4, 4)
  await ada.untilChat('The name ada is yours') // a claim needs it
  await ada.untilChat('The claim harbour is yours')
  await ada.until(() => window.__voxeld.state().claim === 'ada/harbour')
  await untilLine(ada, 'Your claim: harbour')
  assert.equal((await ada.state()).acknowledgedEdits, before, 'a click at a corner broke a block')
  await ada.picture('claim-own')
  spot = await ada.aimAtGround()
  await ada.click('right') // she builds in it
})

test('others are shown the claim, and refused', async () => {
  eve = await Player.open(nodes[1].url, 'eve')
  await eve.play()
  await eve.until(() => window.__voxeld.state().claims.includes('ada/harbour'))
  await eve.stand()
  await eve.until(() => window.__voxeld.state().claim === 'ada/harbour') // she starts where ada did
  const at = await eve.aimAtGround()
  const there = await eve.blockAt(at)
  await eve.page.mouse.down()
  await eve.page.mouse.up()
  await untilToast(eve, 'This is ada’s claim.')
  assert.equal(await eve.blockAt(at), there)
  await eve.page.keyboard.press('KeyC')
  await eve.picture('claim-refused')
  await eve.say('/claims ada')
  await eve.untilChat('ada/harbour: ')
  await eve.say('/unclaim ada/harbour')
  await eve.untilChat('The claim ada/harbour is not yours.')
})

test('who only looks registers no name, and who writes a line does', async () => {
  const registered = async () => {
    const commands = JSON.parse(await nodes[1].operate('audit', '--json'))
    return commands.filter(({ command }) => command === 'register').map(({ by }) => by)
  }
  assert.deepEqual(await registered(), ['ada'])
  await eve.say('whose is this?')
  await eve.untilChat('The name eve is yours')
  assert.deepEqual(await registered(), ['ada', 'eve'])
})

test('a line shows who is left and entered, and walls stand around the claim', async () => {
  await eve.walk(9)
  await eve.until(() => window.__voxeld.state().claim === '')
  await eve.until(() => document.querySelector('.claim-line').textContent.includes('You left ada’s claim')) // also once it has faded
  await eve.page.evaluate(
    ([x, y, z]) => window.__voxeld.lookAt(x, y + 2, z),
    [Math.floor(middle.x), Math.floor(middle.y), Math.floor(middle.z)],
  )
  await eve.stand()
  await eve.picture('claim-from-outside')
  // without the walls and ada's name
  const { drawCalls } = await eve.state()
  await eve.page.keyboard.press('F1')
  await eve.until((before) => window.__voxeld.state().drawCalls <= before - 2, drawCalls)
  await eve.picture('claim-bare')
  await eve.page.keyboard.press('F1')
  await eve.until((before) => window.__voxeld.state().drawCalls >= before, drawCalls)
})

test('members build, and a claim for members only keeps others out', async () => {
  await ada.say('/flag harbour enter members')
  await ada.untilChat('Only members may enter ada/harbour.')
  const inwards = async () => {
    await eve.page.evaluate(
      ([x, y, z]) => window.__voxeld.lookAt(x, y + 1, z),
      [Math.floor(middle.x), Math.floor(middle.y), Math.floor(middle.z)],
    )
    await eve.page.keyboard.down('KeyW')
    await eve.page.keyboard.down('Space')
  }
  const stop = async () => {
    await eve.page.keyboard.up('Space')
    await eve.page.keyboard.up('KeyW')
  }
  await inwards()
  await untilToast(eve, 'Only members may enter ada’s claim.')
  await stop()
  assert.equal((await eve.state()).claim, '')
  await eve.picture('claim-closed')
  await ada.say('/trust harbour eve')
  await ada.untilChat('eve may build in ada/harbour.')
  await inwards()
  await untilLine(eve, 'Ada’s claim: harbour')
  await eve.until(() => window.__voxeld.state().claim === 'ada/harbour')
  await stop()
  await eve.stand()
  const at = await eve.aimAtGround([spot])
  await eve.click('left')
  await ada.untilBlock(at, AIR)
  const listed = JSON.parse(await nodes[1].operate('claims', '--json'))
  assert.equal(listed.length, 1)
  assert.deepEqual([listed[0].owner_name, listed[0].name, listed[0].member_names], ['ada', 'harbour', ['eve']])
})

test('a claim that is given up is not shown any more', async () => {
  await ada.say('/unclaim harbour')
  await ada.untilChat('The land of ada/harbour is free again.')
  for (const player of [ada, eve]) await player.until(() => window.__voxeld.state().claims.length === 0)
})

test('the pages had no errors', () => {
  assert.deepEqual([...ada.troubles, ...eve.troubles], [])
})
