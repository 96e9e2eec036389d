// Everybody can use the panels: axe finds nothing serious, everything is reachable in a small window, and the focus is where it belongs.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const { default: AxeBuilder } = createRequire(new URL('../../web/package.json', import.meta.url))(
  '@axe-core/playwright',
)

const SMALL = { width: 640, height: 360 }

let daemon
let ada

before(async () => {
  daemon = await Daemon.start()
  ada = await Player.open(daemon.url, 'ada', { device: { viewport: SMALL } })
})

after(async () => {
  await ada?.close()
  await daemon?.remove()
})

/** Fails if axe finds something serious, or if an element cannot be scrolled into the window. */
async function inspect(name) {
  const { violations } = await new AxeBuilder({ page: ada.page }).setLegacyMode().analyze()
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  assert.deepEqual(
    serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`),
    [],
  )
  const hidden = await ada.page.evaluate(() => {
    const elements = [...document.querySelectorAll('button, input, select, summary, output, h1, h2, kbd')]
    return elements
      .filter((element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest('[inert]'))
      .filter((element) => !document.querySelector('dialog[open]') || element.closest('dialog[open]'))
      .filter((element) => {
        element.scrollIntoView({ block: 'nearest' })
        const { left, top, right, bottom } = element.getBoundingClientRect()
        return left < -1 || top < -1 || right > innerWidth + 1 || bottom > innerHeight + 1
      })
      .map((element) => element.outerHTML)
  })
  assert.deepEqual(hidden, [])
  await ada.picture(`small-${name}`)
}

const focusIsIn = (selector) => ada.until((selector) => document.activeElement?.closest(selector), selector)

test('the title', async () => {
  await ada.until(() => window.__voxeld?.state().chunksMeshed > 20)
  await inspect('title')
  await ada.play()
})

test('the dialog for the look', async () => {
  await ada.page.evaluate(() => document.exitPointerLock())
  await ada.page.click('.menu button:has-text("Change your look")')
  await focusIsIn('.skin-dialog')
  await inspect('look')
  await ada.page.keyboard.press('Escape')
  await ada.until(() => !document.querySelector('.skin-dialog'))
  await ada.page.click('.menu button.primary')
  await ada.until(() => window.__voxeld.state().screen === 'play')
})

test('the menu takes the focus, keeps it, and closes at Escape', async () => {
  await ada.page.evaluate(() => document.exitPointerLock()) // as the browser does at Escape
  await ada.until(() => window.__voxeld.state().screen === 'menu')
  await focusIsIn('.menu')
  await inspect('menu')
  await ada.page.focus('#tab-game')
  await ada.page.keyboard.press('ArrowRight')
  await focusIsIn('#tab-settings')
  await inspect('menu-settings')
  await ada.page.keyboard.press('ArrowRight')
  await ada.page.waitForSelector('.bindings')
  await inspect('menu-keys')
  for (const key of ['Tab', 'Shift+Tab', 'Shift+Tab', 'Shift+Tab']) {
    await ada.page.keyboard.press(key)
    assert.ok(
      await ada.page.evaluate(
        () => document.activeElement === document.body || document.activeElement.closest('.menu'),
      ),
    )
  }
  await ada.page.keyboard.press('Escape')
  await ada.until(() => window.__voxeld.state().screen === 'play')
})

test('a key can be bound again', async () => {
  await ada.page.keyboard.press('Escape')
  await ada.until(() => window.__voxeld.state().screen === 'menu')
  await ada.page.click('[data-action=fly]')
  await ada.page.keyboard.press('KeyJ')
  await ada.until(() => document.querySelector('[data-action=fly]').textContent === 'J')
  await ada.page.click('.menu button.primary')
  await ada.until(() => window.__voxeld.state().screen === 'play')
  await ada.page.keyboard.press('KeyJ')
  await ada.until(() => window.__voxeld.state().flying)
  await ada.page.keyboard.press('KeyJ')
  await ada.until(() => !window.__voxeld.state().flying)
})

test('keys alone look around', async () => {
  const { yaw } = await ada.state()
  await ada.page.keyboard.down('ArrowRight')
  await ada.until((yaw) => window.__voxeld.state().yaw > yaw + 0.2, yaw)
  await ada.page.keyboard.up('ArrowRight')
})

test('the circle of actions', async () => {
  await ada.page.keyboard.press('KeyU')
  await focusIsIn('.radial')
  await inspect('radial')
  await ada.page.keyboard.press('KeyU')
  await ada.until(() => window.__voxeld.state().screen === 'play')
})

test('the blocks', async () => {
  await ada.page.keyboard.press('KeyE')
  await focusIsIn('.inventory')
  await inspect('blocks')
  await ada.page.keyboard.press('Escape')
  await ada.until(() => window.__voxeld.state().screen === 'play')
})

test('the chat is a log, and closes at Escape', async () => {
  await ada.page.keyboard.press('KeyT')
  await focusIsIn('.chat')
  assert.equal(await ada.page.getAttribute('.chat-log', 'role'), 'log')
  await ada.page.keyboard.type('/')
  await inspect('chat')
  await ada.page.keyboard.press('Escape')
  await ada.until(() => window.__voxeld.state().screen === 'play')
})

test('the map', async () => {
  await ada.page.keyboard.press('KeyM')
  await focusIsIn('.map')
  await inspect('map')
  await ada.page.keyboard.press('KeyM')
  await ada.until(() => window.__voxeld.state().screen === 'play')
  assert.deepEqual(ada.troubles, [])
})

test('the page is in the language of the browser, and then in the one that the player chooses', async () => {
  const greta = await Player.open(daemon.url, 'greta', { device: { locale: 'de-DE' } })
  try {
    const isIn = (language, motto) =>
      greta.until(
        ([language, motto]) =>
          document.documentElement.lang === language && document.querySelector('.motto').textContent === motto,
        [language, motto],
      )
    await isIn('de', 'Eine Welt, von allen betrieben')
    assert.equal(await greta.page.textContent('.title button.primary'), 'Spielen')
    await greta.picture('german-title')
    await greta.play()
    await greta.untilChat('Willkommen in')
    await greta.page.keyboard.press('KeyE')
    await greta.page.fill('.inventory input', 'rote wolle')
    assert.equal(await greta.page.textContent('.inventory h3:visible'), 'Wolle')
    await greta.picture('german-blocks')
    await greta.page.keyboard.press('Escape')
    await greta.until(() => window.__voxeld.state().screen === 'play')
    await greta.page.evaluate(() => document.exitPointerLock()) // as the browser does at Escape
    await greta.page.click('#tab-settings')
    await greta.page.selectOption('.menu select', { label: 'English' })
    await greta.picture('german-menu')
    await greta.page.click('.menu button:has-text("Neu laden")')
    await isIn('en', 'One world, hosted by everyone')
    assert.deepEqual(greta.troubles, [])
  } finally {
    await greta.close()
  }
})
