// What the server says, on pages in German and English: an owner asks for help, and gives commands. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const PHONE = { width: 390, height: 844 }
const DESK = { width: 1280, height: 720 }

let daemon
let ada

before(async () => {
  daemon = await Daemon.start()
})

after(async () => {
  await ada?.close()
  await daemon?.remove()
})

for (const { language, device, groups, nonsense, first, banned, refused, unknown } of [
  {
    language: 'de',
    device: { viewport: DESK, deviceScaleFactor: 1 },
    groups: ['Reden', 'Reisen', 'Bauen', 'Namen und Grundstücke', 'Moderation', 'Verwaltung'],
    nonsense: 'Es gibt keinen Befehl und keine Gruppe nonsense für dich.',
    first: '/approve NUMMERgibt einem Spieler den Namen',
    banned: 'eve ist gesperrt: 2 Stunden.',
    refused: 'So geht es: /ban NAME [ZEIT] [GRUND]',
    unknown: 'Diesen Befehl gibt es nicht: /help zeigt die, die du benutzen darfst.',
  },
  {
    language: 'en',
    device: { viewport: PHONE, deviceScaleFactor: 1 },
    groups: ['Talk', 'Travel', 'Build', 'Names and claims', 'Moderation', 'Administration'],
    nonsense: 'There is no command or group nonsense that you may use.',
    first: '/approve NUMBERgive a player the name',
    banned: 'eve is banned for 2 hours.',
    refused: 'Usage: /ban NAME [TIME] [REASON].',
    unknown: 'There is no such command: /help lists those that you may use.',
  },
])
  test(`help and answers in ${language}`, async () => {
    const name = `ada-${language}`
    ada = await Player.open(daemon.url, name, { device, settings: { language, hints: false } })
    await ada.play()
    await ada.say('/register')
    await ada.untilChat(name)
    await ada.say(`/owner ${await daemon.operate('owner')}`)
    await ada.untilChat('/help')

    await ada.say('/help nonsense')
    await ada.page.waitForSelector(`dialog[open] >> text=${nonsense}`)
    await ada.page.keyboard.press('Escape')
    await ada.until(() => window.__voxeld.state().screen === 'play')
    await ada.say('/help ban')
    await ada.until(() => document.activeElement.matches('dialog[open] .command[aria-current]'))
    const asked = await ada.page.evaluate(() => {
      const list = document.querySelector('.command-groups').getBoundingClientRect()
      const { top, bottom } = document.activeElement.getBoundingClientRect()
      return { text: document.activeElement.textContent, seen: top >= list.top && bottom <= list.bottom }
    })
    assert.ok(asked.text.startsWith('/ban ') && asked.seen, `the focus is on ${JSON.stringify(asked)}`)
    await ada.page.keyboard.press('Escape')
    await ada.until(() => window.__voxeld.state().screen === 'play')
    await ada.say('/help')
    await ada.page.waitForSelector('dialog[open] summary')
    assert.deepEqual(await ada.page.locator('dialog[open] summary b').allTextContents(), groups)
    await ada.page.click('dialog[open] summary >> nth=4')
    await ada.until(
      (first) => document.querySelector('dialog[open] details[open] li').textContent.startsWith(first),
      first,
    )
    for (const [size, viewport] of [
      ['1280', DESK],
      ['390', PHONE],
    ]) {
      await ada.page.setViewportSize(viewport)
      await ada.picture(`help-${language}-${size}`)
      const { left, right, top, bottom } = await ada.page.$eval('.command-list', (panel) =>
        panel.getBoundingClientRect().toJSON(),
      )
      assert.ok(left >= 0 && right <= viewport.width && top >= 0 && bottom <= viewport.height, `outside at ${size}`)
    }
    await ada.page.click('dialog[open] details[open] .command:has(b:text-is("/ban"))')
    await ada.until(() => document.querySelector('.chat-input').value === '/ban ')
    await ada.page.keyboard.press('Enter')
    await ada.untilChat(refused)
    await ada.say('/ban eve 2h')
    await ada.untilChat(banned)
    await ada.say('/fly')
    await ada.untilChat(unknown)
    await ada.say('/who')
    await ada.untilChat(`: ${name}`)
    for (const [size, viewport] of [
      ['1280', DESK],
      ['390', PHONE],
    ]) {
      await ada.page.setViewportSize(viewport)
      await ada.page.keyboard.press('KeyT')
      await ada.picture(`notices-${language}-${size}`)
      await ada.page.keyboard.press('Escape')
    }
    assert.deepEqual(ada.troubles, [])
    await ada.close()
    ada = null
  })

test('a shader that the browser refuses is reported once, and the rest is drawn', async () => {
  ada = await Player.open(daemon.url, 'ada', {
    prepare: (page) =>
      page.addInitScript(() => {
        const { shaderSource } = WebGL2RenderingContext.prototype
        let refused = false
        WebGL2RenderingContext.prototype.shaderSource = function (shader, source) {
          const first = !refused && source.includes('gl_FragCoord') // not that of the land
          refused ||= first
          shaderSource.call(this, shader, first ? source + 'nonsense' : source)
        }
      }),
  })
  await ada.page.waitForSelector('.toast >> text=cannot draw a part of the picture')
  await ada.play()
  await ada.until(() => window.__voxeld.state().chunksMeshed > 4)
  assert.equal(ada.troubles.length, 1, ada.troubles.join('\n'))
  assert.match(ada.troubles[0], /^console: ERROR: /)
})
