// Signs, in real browsers: one player writes, another one reads, and the text is still there after the node was started again. Run as
// browser.test.mjs.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const { default: AxeBuilder } = createRequire(new URL('../../web/package.json', import.meta.url))(
  '@axe-core/playwright',
)

const SIGN = 202 // and the three ids after it: +x −x +z −z; then those on walls
const STATES = 8

let daemon
let ada
let bob
let at // where the sign stands

before(async () => {
  daemon = await Daemon.start()
  const prepare = (page) =>
    page.addInitScript((hotbar) => {
      const settings = JSON.parse(localStorage.getItem('voxeld.settings') ?? '{}')
      localStorage.setItem('voxeld.settings', JSON.stringify({ ...settings, hotbar }))
    }, Array(9).fill(SIGN))
  ada = await Player.open(daemon.url, 'ada', { prepare })
  bob = await Player.open(daemon.url, 'bob')
  await Promise.all([ada.play(), bob.play()])
})

after(async () => {
  await Promise.all([ada?.close(), bob?.close()])
  await daemon?.remove()
})

/** Looks at the sign, and waits until its text is read. */
async function reads(player, text) {
  await player.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y + 0.2, z), at)
  await player.until((text) => document.querySelector('.sign-line')?.innerText === text, text)
  await player.until(() => window.__voxeld.state().signs === 1)
}

/** Opens the dialog of the sign by a click. */
async function openSign() {
  await ada.page.evaluate(([x, y, z]) => window.__voxeld.lookAt(x, y + 0.2, z), at)
  await ada.until(([x, y, z]) => {
    const aim = window.__voxeld.aim()
    return aim?.x === x && aim.y === y && aim.z === z
  }, at)
  await ada.page.mouse.down({ button: 'right' })
  await ada.page.mouse.up({ button: 'right' })
  await ada.until(() => window.__voxeld.state().screen === 'sign')
}

test('whoever places a sign can write on it, and others read it', async () => {
  const [x, y, z] = await ada.aimAtGround()
  at = [x, y + 1, z]
  await ada.click('right')
  const block = await ada.blockAt(at)
  assert.ok(block >= SIGN && block < SIGN + STATES, `block ${block} is no sign`)
  await ada.until(() => window.__voxeld.state().screen === 'sign')
  await ada.page.keyboard.type('To the\nharbour →\n  a line that is far too long')
  await ada.page.setViewportSize({ width: 640, height: 360 })
  await ada.picture('sign-dialog')
  const { violations } = await new AxeBuilder({ page: ada.page }).setLegacyMode().analyze()
  assert.deepEqual(
    violations.filter(({ impact }) => impact === 'serious' || impact === 'critical'),
    [],
  )
  await ada.page.setViewportSize({ width: 960, height: 600 })
  await ada.page.getByRole('button', { name: 'Write' }).click()
  await ada.until(() => document.querySelector('.sign-dialog [role=alert]').textContent !== '')
  await ada.page.focus('.sign-dialog textarea')
  for (const _ of ' too long') await ada.page.keyboard.press('Backspace')
  await ada.page.getByRole('button', { name: 'Write' }).click()
  await ada.until(() => window.__voxeld.state().screen === 'play')
  await ada.settled()
  const text = 'To the\nharbour →\n  a line that is far'
  await reads(ada, text.replace('  a', 'a')) // as the page lays it out
  await bob.untilBlock(at, block)
  await ada.nextFrames(3)
  await ada.picture('sign')
  await reads(bob, text.replace('  a', 'a'))
})

test('it is still there after the node was started again', async () => {
  ada.mayLoseConnection = bob.mayLoseConnection = true
  await daemon.end('SIGKILL')
  await daemon.run()
  await bob.until(() => window.__voxeld.state().connected)
  await bob.reload()
  await reads(bob, 'To the\nharbour →\na line that is far')
})

test('it is written again, and its text goes with the block', async () => {
  await ada.until(() => window.__voxeld.state().connected)
  await openSign()
  await ada.page.keyboard.press('ControlOrMeta+A')
  await ada.page.keyboard.type('closed')
  await ada.page.getByRole('button', { name: 'Write' }).click()
  await reads(bob, 'closed')
  await ada.until(() => window.__voxeld.state().screen === 'play')
  await openSign()
  await ada.page.keyboard.type('too late')
  await bob.click('left') // at the sign
  await ada.untilBlock(at, 0)
  const enter = { key: 'Enter', code: 'Enter', ctrlKey: true }
  await ada.page.getByRole('button', { name: 'Cancel' }).dispatchEvent('keydown', enter) // writes nothing
  assert.equal(await ada.page.textContent('.sign-dialog [role=alert]'), '')
  await ada.page.getByRole('button', { name: 'Write' }).click()
  await ada.page.getByRole('alert').getByText('The sign is gone').waitFor()
  assert.match(await ada.page.inputValue('.sign-dialog textarea'), /too late/)
  await ada.page.getByRole('button', { name: 'Cancel' }).click()
  await bob.until(() => window.__voxeld.state().signs === 0 && !document.querySelector('.sign-line').innerText)
})

test('nothing went wrong on the pages', () => {
  assert.deepEqual([...ada.troubles, ...bob.troubles], [])
})
