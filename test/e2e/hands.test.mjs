// Keys, mouse and gamepad beyond walking and building. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const POPPY = 32

let daemon
let ada

before(async () => {
  daemon = await Daemon.start()
  ada = await Player.open(daemon.url, 'ada', {
    prepare: (page) =>
      page.addInitScript(() => {
        // the browser of the tests gives the keys to the page in any case
        navigator.keyboard.lock = async (codes) => (window.__locked = codes)
      }),
  })
  await ada.play()
})

after(async () => {
  await ada?.close()
  await daemon?.remove()
})

const untilScreen = (screen) => ada.until((screen) => window.__voxeld.state().screen === screen, screen)
const hotbar = () => ada.state().then(({ hotbar }) => hotbar)

async function openMenu() {
  await ada.page.keyboard.press('Escape')
  await untilScreen('menu')
}

async function resume() {
  await ada.page.click('.menu button.primary')
  await untilScreen('play')
}

test('in the inventory, digits choose a slot, or put a block into one, and a click on the hotbar works', async () => {
  await ada.page.keyboard.press('KeyE')
  await ada.page.waitForSelector('.inventory', { state: 'visible' })
  await ada.page.mouse.move(2, 2)
  await ada.page.keyboard.press('Digit3')
  await ada.until(() => window.__voxeld.state().hotbarSlot === 2)
  await ada.page.hover('.inventory .slot:has(img[alt=Poppy])')
  await ada.page.keyboard.press('Digit9')
  await ada.until((poppy) => window.__voxeld.state().hotbar[8] === poppy, POPPY)
  assert.equal((await ada.state()).hotbarSlot, 2)
  await ada.page.click('.hotbar .slot:nth-of-type(5)')
  await ada.until(() => window.__voxeld.state().hotbarSlot === 4)
  await ada.page.fill('.inventory input', 'poppy')
  await ada.page.keyboard.press('Enter')
  await ada.until((poppy) => window.__voxeld.state().hotbar[4] === poppy, POPPY)
  await ada.picture('hands-inventory')
  const before = await hotbar()
  await ada.page.focus('.inventory')
  await ada.page.keyboard.press('KeyE')
  await untilScreen('play')
  assert.deepEqual(await hotbar(), before)
  await ada.page.waitForSelector('.hotbar', { state: 'visible' })
  assert.equal(await ada.page.$eval('.hotbar', (hotbar) => hotbar.nextElementSibling.className), 'chat')
})

test('a block that was pointed at when the inventory was closed is not put anywhere when it is open again', async () => {
  await ada.page.keyboard.press('KeyE')
  await ada.page.hover('.inventory .slot:has(img[alt=Stone])')
  const before = await hotbar()
  await ada.page.keyboard.press('KeyE')
  await untilScreen('play')
  await ada.page.evaluate(() => {
    const digit = (code) => window.dispatchEvent(new KeyboardEvent('keydown', { code, key: code.at(-1) }))
    window.dispatchEvent(new KeyboardEvent('keydown', { code: 'KeyE', key: 'e' }))
    digit('Digit8') // before the mouse moves
  })
  await ada.until(() => window.__voxeld.state().hotbarSlot === 7)
  assert.deepEqual(await hotbar(), before)
  await ada.page.mouse.move(2, 2)
  await ada.page.keyboard.press('KeyE')
  await untilScreen('play')
})

test('a button of the mouse, its wheel, Control alone and with others can be bound', async () => {
  await openMenu()
  await ada.page.click('#tab-keys')
  const bind = async (action, press, name) => {
    await ada.page.click(`[data-action=${action}]`)
    await press(`[data-action=${action}]`)
    await ada.until(
      ([action, name]) => document.querySelector(`[data-action=${action}]`).textContent.includes(name),
      [action, name],
    )
  }
  await bind('fly', (key) => ada.page.click(key, { button: 'middle' }), 'Middle click')
  await bind('sink', () => ada.page.keyboard.press('ControlLeft'), 'Left Control')
  await bind('mute', () => ada.page.keyboard.press('Control+Shift+KeyX'), 'Ctrl+Shift+X')
  await ada.page.click('[data-action=camera]')
  await ada.page.keyboard.press('Control+AltRight') // AltGr
  assert.equal(await ada.page.textContent('[data-action=camera]'), 'V')
  await bind('wave', () => ada.page.mouse.wheel(0, -100), 'Wheel Up')
  await ada.picture('hands-bindings')
  await resume()
  await ada.page.mouse.down({ button: 'middle' })
  await ada.page.mouse.up({ button: 'middle' })
  await ada.until(() => window.__voxeld.state().flying)
  await ada.page.keyboard.down('ControlLeft')
  await ada.until(() => window.__voxeld.state().onGround)
  await ada.page.keyboard.up('ControlLeft')
  await ada.page.mouse.wheel(0, -100)
  await ada.untilChat('o/')
})

test('a key looks closer while it is held, another one hides everything but the world until the world is left', async () => {
  await ada.picture('hands-far')
  const { triangles } = await ada.state()
  await ada.page.keyboard.down('KeyZ')
  await ada.until((far) => window.__voxeld.state().triangles < far, triangles)
  await ada.picture('hands-near')
  await ada.page.keyboard.up('KeyZ')
  await ada.until((far) => window.__voxeld.state().triangles === far, triangles)
  await ada.page.keyboard.press('F1')
  await ada.page.waitForSelector('.hotbar', { state: 'hidden' })
  await ada.until(() => /F1/.test(document.querySelector('.toasts').textContent))
  await ada.until(() => document.querySelector('.toasts').childElementCount === 0)
  await ada.picture('hands-bare')
  await openMenu()
  await ada.page.click('#tab-game')
  await ada.page.getByText('Leave', { exact: true }).click()
  await untilScreen('title')
  await ada.play()
  await ada.page.waitForSelector('.hotbar', { state: 'visible' })
})

test('a gamepad chooses from the circle with a stick, and moves sliders', async () => {
  await ada.page.evaluate(() => {
    // browsers without a screen have no gamepads
    const pad = { mapping: 'standard', axes: [0, 0, 0, 0], buttons: [] }
    navigator.getGamepads = () => [pad]
    window.__pad = (axes, pressed) => {
      pad.axes = axes
      pad.buttons = Array.from({ length: 17 }, (_, i) => ({ pressed: pressed.includes(i), value: 0 }))
    }
    window.dispatchEvent(new Event('gamepadconnected'))
  })
  const press = async (button, axes = [0, 0, 0, 0]) => {
    for (const pressed of [[button], []]) {
      await ada.page.evaluate((input) => window.__pad(...input), [axes, pressed])
      await ada.nextFrames(2)
    }
  }
  await press(15)
  await ada.page.waitForSelector('.radial', { state: 'visible' })
  const focused = async (axes, text) => {
    await ada.page.evaluate((axes) => window.__pad(axes, []), axes)
    await ada.until((text) => document.activeElement.textContent === text, text)
  }
  await focused([-1, 0, 0, 0], 'Inspect')
  await focused([0, 1, 0, 0], 'The past')
  await focused([0.7, -0.7, 0, 0], 'Give')
  await press(0, [0.7, -0.7, 0, 0])
  await untilScreen('play')
  await ada.until(() => document.querySelector('.toasts').textContent.includes('Look at a player'))
  await press(9)
  await untilScreen('menu')
  await ada.page.focus('.menu button.primary')
  await press(13)
  await press(15)
  await ada.until(() => document.activeElement.id === 'tab-settings')
  await ada.page.focus('.menu input[aria-label=Sensitivity]')
  await press(15)
  await ada.until(() => document.querySelector('.menu input[aria-label=Sensitivity]').value === '1.1')
  await press(14)
  await ada.until(() => document.querySelector('.menu input[aria-label=Sensitivity]').value === '1')
  await press(13)
  await ada.until(() => document.activeElement.ariaLabel === 'Brightness')
  await resume()
})

test('in full screen, Escape opens the menu', async () => {
  await ada.page.keyboard.press('F11')
  await ada.until(() => document.fullscreenElement && window.__locked)
  const locked = await ada.page.evaluate(() => window.__locked)
  assert.ok(locked.includes('Escape') && locked.includes('KeyW'), locked.join())
  await openMenu()
  assert.ok(await ada.page.evaluate(() => document.fullscreenElement !== null))
  await resume()
  await ada.page.keyboard.press('F11')
  await ada.until(() => !document.fullscreenElement)
})

test('the page and its menu ask before the world is left only while an edit is not acknowledged', async () => {
  const ground = await ada.aimAtGround()
  await ada.reload()
  assert.deepEqual(ada.dialogs, [])
  ada.mayLoseConnection = true
  await daemon.end('SIGKILL')
  await ada.until(() => !window.__voxeld.state().connected)
  await ada.page.evaluate((at) => window.__voxeld.lookAt(...at), ground)
  await ada.page.mouse.down()
  await ada.page.mouse.up()
  await ada.until(() => window.__voxeld.state().pendingEdits === 1)
  await openMenu()
  await ada.page.getByRole('button', { name: 'Leave' }).click()
  await ada.page.getByRole('button', { name: 'Leave and lose 1 edit' }).waitFor()
  assert.equal((await ada.state()).screen, 'menu')
  await resume()
  await ada.page.goto(daemon.url).catch(() => undefined)
  assert.deepEqual(ada.dialogs, ['beforeunload'])
})
