// The map and the list of everybody, in real browsers on two nodes; and the public map. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Daemon } from './daemon.mjs'
import { buildTower } from './mason.mjs'
import { Player } from './player.mjs'

const { default: AxeBuilder } = createRequire(new URL('../../web/package.json', import.meta.url))(
  '@axe-core/playwright',
)

const RED_WOOL = 43
const PHONES = [
  { name: 'portrait', width: 390, height: 844 },
  { name: 'landscape', width: 640, height: 360 },
]

const nodes = []
let ada
let bob
let guest
let spawn

before(async () => {
  nodes.push(await Daemon.start())
  nodes.push(await Daemon.start(nodes[0]))
})

after(async () => {
  await Promise.all([ada?.close(), bob?.close(), guest?.close()])
  for (const node of nodes) await node.remove()
})

/** Returns the number of pixels with a colour, as a condition of their channels, in so many pixels around the middle of the map. */
function pixels(player, condition, around = Infinity) {
  return player.page.evaluate(
    ([condition, around]) => {
      const canvas = document.querySelector('.map-canvas')
      const { width, height } = canvas
      const { data } = canvas.getContext('2d').getImageData(0, 0, width, height)
      const has = new Function('r', 'g', 'b', `return ${condition}`)
      let n = 0
      for (let i = 0; i < width * height; i++) {
        const near =
          around === null ||
          Math.max(Math.abs((i % width) - width / 2), Math.abs(Math.floor(i / width) - height / 2)) <= around
        if (near && has(data[4 * i], data[4 * i + 1], data[4 * i + 2])) n++
      }
      return n
    },
    [condition, around === Infinity ? null : around],
  )
}

async function untilPixels(player, condition, around, least = 1) {
  const deadline = Date.now() + 60_000
  while ((await pixels(player, condition, around)) < least) {
    if (Date.now() > deadline) {
      await player.screenshot('map-missing')
      assert.fail(`no pixel with ${condition}`)
    }
    await player.page.waitForTimeout(200)
  }
}

/** Returns how many blocks are between two points of the map. */
async function blocksBetween(player, from, to) {
  const at = []
  for (const [x, y] of [from, to]) {
    await player.page.mouse.move(x, y)
    at.push(
      /^x (-?\d+), z (-?\d+)/
        .exec(await player.page.textContent('.map-pointer'))
        .slice(1)
        .map(Number),
    )
  }
  return Math.hypot(at[0][0] - at[1][0], at[0][1] - at[1][1])
}

/** Moves two fingers apart, from some pixels from the middle between them to others. */
async function pinch({ page }, [x, y], from, to) {
  const session = await page.context().newCDPSession(page)
  const fingers = (away) => [-away, away].map((dx, id) => ({ x: x + dx, y, id }))
  await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: fingers(from) })
  for (let i = 1; i <= 5; i++)
    await session.send('Input.dispatchTouchEvent', {
      type: 'touchMove',
      touchPoints: fingers(from + ((to - from) * i) / 5),
    })
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
  await session.detach()
}

/** Travels to a place that is far away. A player may travel every two seconds; who asks more often is told to write less. */
async function travel(player, command, x, z) {
  for (;;) {
    const refused = await player.page.locator('text=travel too often').count()
    await player.say(`/${command} ${x} 120 ${z}`)
    const answered = await player.until(
      ([x, z, refused]) => {
        const { x: atX, z: atZ } = window.__voxeld.state()
        if (Math.hypot(atX - x, atZ - z) < 20) return 'arrived'
        const lines = [...document.querySelectorAll('.chat-line')]
        return lines.filter((line) => line.textContent.includes('travel too often')).length > refused && 'refused'
      },
      [x, z, refused],
    )
    if ((await answered.jsonValue()) === 'arrived') return
    await pause(2000)
  }
}

/** Reports whether a node leads land at a place, or up to 4 km east or south of it. */
async function leads(node, x, z) {
  const sectors = [0, 1, 2].flatMap((j) =>
    [0, 1, 2].map((i) => [x, z].map((at, k) => Math.floor(at / 2048) + [i, j][k])),
  )
  const query = sectors.map((sector) => sector.join('.')).join()
  const answer = await fetch(new URL(`surface/hosts?sectors=${query}`, nodes[0].url))
  const { sectors: hosts } = await answer.json()
  return Object.values(hosts)
    .flat()
    .some((host) => host.node === node)
}

async function inspect(player) {
  const { violations } = await new AxeBuilder({ page: player.page }).setLegacyMode().analyze()
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  assert.deepEqual(
    serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`),
    [],
  )
}

test('the map shows the land, a claim, and a player of another node', async () => {
  ada = await Player.open(nodes[0].url, 'ada', { device: { deviceScaleFactor: 1 } }) // pixels of its map are counted
  await ada.play()
  spawn = await ada.state()
  await ada.register()
  await ada.say(`/owner ${await nodes[0].operate('owner')}`)
  await ada.untilChat('You own this world now')
  bob = await Player.open(nodes[1].url, 'bob')
  await bob.play()
  await ada.openMap()
  await ada.until(() => document.querySelector('.map aside').textContent.includes('1 other player'))
  assert.equal(await pixels(ada, 'r === 0xb8 && g === 0xff && b === 0x6a'), 0)
  await ada.closeMap()
  const [x, z] = [spawn.x, spawn.z].map(Math.floor)
  await ada.say(`/claim ${x - 30},${z - 30} ${x - 10},${z - 6} harbour`)
  await ada.until(() => window.__voxeld.state().claims.length === 1)
  await ada.openMap()
  await untilPixels(ada, 'r === 0xb8 && g === 0xff && b === 0x6a') // the outline
  assert.match(await ada.page.textContent('.map aside'), /1 claim/)
  await inspect(ada)
  await ada.picture('map')
})

test('mouse and keys move the map, and a place has a height and a link', async () => {
  const at = () => ada.page.textContent('.map-pointer')
  const box = await ada.page.locator('.map-canvas').boundingBox()
  const [mx, my] = [box.x + box.width / 2, box.y + box.height / 2]
  await ada.page.mouse.move(mx + 40, my + 40)
  const before = await at()
  assert.match(before, /^x -?\d+, z -?\d+, height \d+$/)
  await ada.page.mouse.down()
  await ada.page.mouse.move(mx + 140, my + 90, { steps: 4 })
  await ada.page.mouse.up()
  assert.equal(await at(), before) // the land follows the pointer
  await ada.page.mouse.wheel(0, 300)
  await ada.page.mouse.move(mx, my)
  assert.notEqual(await at(), before)
  await ada.page.click('[aria-label="Show where I am"]')
  await ada.page.focus('.map-canvas')
  for (const key of ['ArrowRight', '+', '-', 'ArrowLeft', 'Enter']) await ada.page.keyboard.press(key)
  const title = await ada.page.textContent('.map-place h3')
  const [x, , z] = title.split(', ').map(Number)
  assert.ok(Math.hypot(x - spawn.x, z - spawn.z) < 3, title)
  await ada.page.fill('.map-name input', 'the spawn')
  await ada.page.keyboard.press('Enter')
  await ada.page.waitForSelector('.map-bookmark')
  await ada.closeMap()
})

test('a bookmark survives a reload, and leads to its place', async () => {
  await travel(ada, 'tp', Math.floor(spawn.x) + 3000, Math.floor(spawn.z))
  await ada.reload()
  await ada.openMap()
  assert.ok((await ada.state()).x > spawn.x + 2000)
  await ada.page.click('text=the spawn')
  await ada.until(() => document.querySelector('.map-place h3')?.checkVisibility())
  await ada.untilMap()
})

test('a tower that is built at another node appears', async () => {
  const red = 'r > 90 && r > 1.8 * g && r > 1.8 * b'
  await ada.untilMap()
  const before = await pixels(ada, red, 150) // edges of marks
  await buildTower(bob.page, nodes[1].url, RED_WOOL, 12, 5, 5)
  await untilPixels(ada, red, 150, before + 5)
  await ada.picture('map-tower')
  await ada.closeMap()
})

test('everybody in the world is listed, not only those nearby', async () => {
  await ada.page.keyboard.down('Tab')
  await ada.until(() => /bob/.test(document.querySelector('.players ul').textContent))
  await ada.until(() => {
    const rows = [...document.querySelectorAll('.players li')].map((row) => row.innerText.replace(/\s+/g, ' ').trim())
    return rows.join() === 'ada you,bob'
  })
  assert.match(await ada.page.textContent('.players h2'), /2 players/)
  await ada.picture('map-people')
  await ada.page.keyboard.up('Tab')
})

test('the map fits a phone', async () => {
  for (const { name, ...size } of PHONES) {
    await ada.page.setViewportSize(size)
    await ada.openMap()
    await inspect(ada)
    const hidden = await ada.page.evaluate(() =>
      [...document.querySelectorAll('.map button, .map input, .map canvas')]
        .filter((element) => element.checkVisibility())
        .filter((element) => {
          element.scrollIntoView({ block: 'nearest' })
          const { left, top, right, bottom, width, height } = element.getBoundingClientRect()
          return left < -1 || top < -1 || right > innerWidth + 1 || bottom > innerHeight + 1 || width * height < 100
        })
        .map((element) => element.outerHTML),
    )
    assert.deepEqual(hidden, [])
    await ada.picture(`map-${name}`)
    const before = await blocksBetween(ada, [40, 100], [240, 100])
    await pinch(ada, [140, 150], 20, 50)
    const after = await blocksBetween(ada, [40, 100], [240, 100])
    assert.ok(Math.abs(before / after - 2.5) < 0.4, `a pinch shows ${after} blocks instead of ${before}`)
    await ada.closeMap()
  }
  await ada.page.setViewportSize({ width: 960, height: 600 })
})

test('the public map needs no session and no WebGL', async () => {
  const sockets = []
  guest = await Player.open(new URL('map', nodes[1].url).href, '', {
    prepare: async (page) => {
      page.on('websocket', (socket) => sockets.push(socket.url()))
      await page.addInitScript(() => {
        const getContext = HTMLCanvasElement.prototype.getContext
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
          return kind === '2d' ? getContext.call(this, kind, ...rest) : null
        }
      })
    },
  })
  await guest.untilMap()
  await guest.page.click('text=Who hosts what')
  await guest.page.waitForSelector('.map-legend li[data-node]')
  await inspect(guest)
  await guest.page.mouse.click(300, 300)
  assert.match(await guest.page.getAttribute('a.primary', 'href'), /\/#-?\d+,\d+,-?\d+$/)
  await guest.picture('map-public')
  assert.ok(!/harbour|ada|bob/.test(await guest.page.textContent('main')))
  assert.deepEqual(sockets, [])
  assert.deepEqual(guest.troubles, [])
  await guest.close()
})

test('when a node dies, its land is not hosted by it any more', async () => {
  const { gateway } = await bob.state()
  const [x, z] = [Math.floor(spawn.x) + 3000, Math.floor(spawn.z)]
  for (let i = 1; !(await leads(gateway, x, z)); i++) {
    assert.ok(i < 16, 'the node leads no land')
    await travel(ada, 'tp', x + 1100 * (i % 4), z + 1100 * Math.floor(i / 4)) // which founds four cells that have one home
  }
  await ada.openMap()
  await ada.page.click('text=Who hosts what')
  for (let i = 0; i < 5; i++) await ada.page.click('[aria-label="Zoom out"]')
  await ada.page.waitForSelector(`.map-legend li[data-node="${gateway}"]`)
  await ada.untilMap()
  await ada.picture('map-hosts')
  await bob.close()
  await nodes[1].end('SIGKILL')
  await ada.until((gateway) => {
    const nodes = [...document.querySelectorAll('.map-legend li')].map((row) => row.dataset.node)
    return nodes.length > 0 && !nodes.includes(gateway)
  }, gateway)
  await ada.picture('map-dead')
})

test('the page had no problems', () => assert.deepEqual(ada.troubles, []))
