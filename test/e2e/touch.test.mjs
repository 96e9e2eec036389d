// A phone: a player with fingers, and no mouse or keyboard, in both orientations.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'
import { Fingers } from './fingers.mjs'

const AIR = 0
const BRICK = 19
const BRICK_SLOT = 6 // in the default hotbar
const COLOURS = 60 // as in browser.test.mjs

const PHONES = [
  { name: 'landscape', width: 844, height: 390 },
  { name: 'portrait', width: 390, height: 844 },
]

let daemon
let player

before(async () => {
  daemon = await Daemon.start()
})

after(async () => {
  await player?.close()
  await daemon?.remove()
})

test('the title fits a small phone, in the language with the longest words', async () => {
  const [width, height] = [360, 640]
  const small = await Player.open(daemon.url, 'small', {
    device: { viewport: { width, height }, hasTouch: true, isMobile: true },
    settings: { language: 'de' },
  })
  await small.page.waitForFunction(() => document.querySelector('.title button.primary').textContent === 'Spielen')
  await small.picture('touch-small-title')
  const boxes = await small.page.$$eval('.title-card, .title-card > *:not(.hidden)', (parts) =>
    parts.map((part) => {
      const { left, right, top, bottom } = part.getBoundingClientRect()
      return [part.className, left, right, top, bottom]
    }),
  )
  for (const [name, left, right, top, bottom] of boxes)
    assert.ok(
      left >= 0 && right <= width && top >= 0 && bottom <= height,
      `${name}: ${left} to ${right}, ${top} to ${bottom}`,
    )
  await small.close()
})

/** Returns where the visible elements of a selector are. */
async function boxesOf(selector) {
  const boxes = await player.page.$$eval(selector, (elements) =>
    elements.map((element) => {
      const { left, top, right, bottom } = element.getBoundingClientRect()
      return {
        name: element.ariaLabel ?? element.className,
        left,
        top,
        right,
        bottom,
      }
    }),
  )
  return boxes.filter(({ left, right }) => right > left)
}

/** Fails unless boxes are on the screen, and none covers another one. */
function assertApart(boxes, width, height) {
  for (const [i, a] of boxes.entries()) {
    assert.ok(a.left >= 0 && a.top >= 0 && a.right <= width && a.bottom <= height, JSON.stringify(a))
    for (const b of boxes.slice(i + 1)) {
      const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top
      assert.ok(apart, `${JSON.stringify(a)} covers ${JSON.stringify(b)}`)
    }
  }
}

for (const { name, width, height } of PHONES) {
  let fingers

  test(`${name}: a player joins by tapping`, async () => {
    await player?.close() // not to stand in the way
    player = await Player.open(daemon.url, `phone-${name}`, {
      device: { viewport: { width, height }, hasTouch: true, isMobile: true },
    })
    fingers = await Fingers.on(player.page)
    await player.until(() => window.__voxeld?.state().chunksMeshed > 20)
    assert.ok((await player.coloursOf(`touch-${name}-title`)) > COLOURS)
    await player.page.fill('.title input.field', player.name)
    await fingers.tap('.title button.primary')
    await player.untilStanding()
    await player.page.waitForSelector('.touch-stick', { state: 'visible' })
    assert.equal(await player.page.evaluate(() => document.pointerLockElement), null)
    assert.ok((await player.coloursOf(`touch-${name}-world`)) > COLOURS)
  })

  test(`${name}: the controls are on the screen, and do not cover each other`, async () => {
    await player.page.waitForSelector('.hints')
    const boxes = await boxesOf('.touch-button, .touch-stick, .hotbar .slot, .hints')
    assert.equal(boxes.length, 7 + 3 + 1 + 9 + 1)
    assertApart(boxes, width, height)
  })

  test(`${name}: a drag turns the camera, and neither scrolls nor zooms the page`, async () => {
    const before = await player.state()
    await fingers.drag([width * 0.7, height * 0.4], [width * 0.7 - 60, height * 0.4 + 30])
    await player.until(({ yaw, pitch }) => {
      const now = window.__voxeld.state()
      return now.yaw < yaw - 0.2 && now.pitch < pitch - 0.1
    }, before)
    const page = await player.page.evaluate(() => [scrollX, scrollY, visualViewport.scale, visualViewport.pageTop])
    assert.deepEqual(page, [0, 0, 1, 0])
    assert.equal((await player.state()).pendingEdits, 0)
  })

  test(`${name}: the stick walks`, async () => {
    await player.walk(3, async (walking) => {
      if (walking) {
        await fingers.press('.touch-stick', [0, -0.9])
        await fingers.press('.touch-jump')
      } else await fingers.lift()
    })
    await player.stand()
  })

  test(`${name}: a finger that rests breaks, and a tap places`, async () => {
    const ground = await player.aimAtGround()
    const middle = [width / 2, height / 2]
    await fingers.rest(middle, () => player.until((at) => window.__voxeld.blockAt(...at) === 0, ground))
    assert.equal(await player.blockAt(ground), AIR)
    await player.settled()

    await fingers.tap(`.hotbar .slot:nth-of-type(${BRICK_SLOT + 1})`)
    await player.until((slot) => window.__voxeld.state().hotbarSlot === slot, BRICK_SLOT)
    const [x, y, z] = await player.aimAtGround([ground])
    // not in the middle: what is under the finger counts
    await player.page.evaluate(() => {
      const { x, y, z, yaw, pitch } = window.__voxeld.state()
      const far = 100
      const up = pitch + 0.12
      window.__voxeld.lookAt(
        x - 0.5 - Math.sin(yaw) * Math.cos(up) * far,
        y + 1.12 + Math.sin(up) * far,
        z - 0.5 + Math.cos(yaw) * Math.cos(up) * far,
      )
    })
    await player.stand()
    const degrees = 75 // the default field of view
    const below = (Math.tan(0.12) / Math.tan((degrees / 2) * (Math.PI / 180))) * (height / 2)
    await fingers.tapAt([middle[0], middle[1] + below])
    await player.untilBlock([x, y + 1, z], BRICK)
    await player.settled()
    await player.picture(`touch-${name}-edited`)
  })

  test(`${name}: a swipe over the hotbar selects`, async () => {
    const [first, third] = await player.page.$$eval('.hotbar .slot', (slots) =>
      [slots[0], slots[2]].map((slot) => {
        const { left, top, width, height } = slot.getBoundingClientRect()
        return [left + width / 2, top + height / 2]
      }),
    )
    await fingers.drag(first, third)
    await player.until(() => window.__voxeld.state().hotbarSlot === 2)
  })

  test(`${name}: flying`, async () => {
    await fingers.tap('.touch-fly')
    await player.until(() => window.__voxeld.state().flying)
    const { y } = await player.state()
    await fingers.press('.touch-jump')
    await player.until((y) => window.__voxeld.state().y > y + 2, y)
    await fingers.lift()
    await fingers.press('.touch-sink')
    await player.until(() => window.__voxeld.state().onGround)
    await fingers.lift()
  })

  test(`${name}: chat, blocks and menu`, async () => {
    await fingers.tap('.touch-chat')
    await player.until(() => document.activeElement?.matches('.chat-input'))
    await player.page.keyboard.insertText(`hello from ${name}`) // as a keyboard on the screen does
    await player.picture(`touch-${name}-chat`)
    await player.page.keyboard.press('Enter')
    await player.untilChat(`hello from ${name}`)
    await player.until(() => window.__voxeld.state().screen === 'play')
    await player.page.waitForSelector('.touch-stick', { state: 'visible' })
    await player.until(() => document.querySelectorAll('.hints .done').length === 5) // by all that happened before

    // a panel that opens closes the list of players, and the button says so
    await fingers.tap('.touch-players[aria-pressed=false]')
    await player.page.waitForSelector('.players', { state: 'visible' })
    await fingers.tap('.touch-chat')
    await player.until(() => document.activeElement?.matches('.chat-input'))
    await player.page.keyboard.press('Escape')
    await player.page.waitForSelector('.players', { state: 'hidden' })
    await fingers.tap('.touch-players[aria-pressed=false]')
    await player.page.waitForSelector('.players', { state: 'visible' })
    await fingers.tap('.touch-players[aria-pressed=true]')
    await player.page.waitForSelector('.players', { state: 'hidden' })

    await fingers.tap('.touch-blocks')
    await player.page.waitForSelector('.inventory', { state: 'visible' })
    await player.picture(`touch-${name}-blocks`)
    await fingers.tap('.inventory button.quiet')

    await fingers.tap('.touch-menu')
    await player.page.waitForSelector('.menu', { state: 'visible' })
    await player.picture(`touch-${name}-menu`)
    for (const tab of ['settings', 'keys']) {
      await fingers.tap(`#tab-${tab}`)
      await player.picture(`touch-${name}-menu-${tab}`)
    }
    await fingers.tap('.menu button.primary')
    await player.until(() => window.__voxeld.state().screen === 'play')
  })

  test(`${name}: the line of a building tool is beside the controls, also on the smallest phone`, async () => {
    for (const [width_, height_] of name === 'portrait'
      ? [
          [360, 640],
          [width, height],
        ]
      : [[width, height]]) {
      await player.page.setViewportSize({ width: width_, height: height_ })
      await fingers.tap('.touch-build')
      await player.page.waitForSelector('.build', { state: 'visible' })
      await player.picture(`touch-${width_}-tools`)
      await fingers.tap('.build-tools button:has-text("Wall")')
      await player.page.waitForSelector('.build-bar', { state: 'visible' })
      await player.aimAtGround()
      await fingers.tapAt([width_ / 2, height_ / 2])
      await player.until(() => window.__voxeld.state().build.stage === 'second')
      await fingers.tapAt([width_ / 2, height_ / 2])
      await player.until(() => window.__voxeld.state().build.stage === 'confirm')
      await player.nextFrames(3)
      await player.picture(`touch-${width_}-tool`)
      assertApart(await boxesOf('.touch-button, .touch-stick, .hotbar .slot, .build-bar'), width_, height_)
      await fingers.tap('.build-cancel button')
      await player.until(() => window.__voxeld.state().build.tool === '')
    }
  })

  test(`${name}: a circle of what else there is`, async () => {
    await fingers.tap('.touch-radial')
    await player.page.waitForSelector('.radial', { state: 'visible' })
    await player.picture(`touch-${name}-radial`)
    for (const [width_, height_] of [name === 'portrait' ? [320, 568] : [568, 320], [width, height]]) {
      await player.page.setViewportSize({ width: width_, height: height_ })
      await player.until((width) => window.innerWidth === width, width_)
      const boxes = await boxesOf('.radial button')
      assert.equal(boxes.length, 8 + 1)
      assertApart(boxes, width_, height_)
    }
    await fingers.tap('.radial button:has-text("Wave")')
    await player.untilChat('o/')
    assert.equal((await player.state()).screen, 'play')
    for (const inspects of [true, false]) {
      await fingers.tap('.touch-radial')
      await fingers.tap('.radial button:has-text("Inspect")')
      await player.until((inspects) => {
        const shown = document.querySelector('.claim-line:not(.old)')
        return inspects ? shown?.textContent.includes('Tap a block') : !shown
      }, inspects)
    }
  })

  test(`${name}: a key hides the touch controls, and a finger brings them back`, async () => {
    await player.page.keyboard.press('KeyR')
    await player.page.waitForSelector('.touch-stick', { state: 'hidden' })
    await fingers.drag([width * 0.7, height * 0.4], [width * 0.7 + 30, height * 0.4])
    await player.page.waitForSelector('.touch-stick', { state: 'visible' })
    assert.deepEqual(player.troubles, [])
  })
}
