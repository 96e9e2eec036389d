// A page that is kept in the browser: it opens without its node, and follows the node to a newer build. Run as browser.test.mjs.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

/** Reverses the hashes in the names of files. */
const renamed = (text) =>
  text.replace(/-([\w-]{8})\.(js|css)\b/g, (_, hash, type) => `-${[...hash].reverse().join('')}.${type}`)

/** Forwards to a daemon, notes which paths were asked for, and can serve its client as another build, with other names of all files. */
class Front {
  asked = []
  newer = false
  #server

  static async start(daemon) {
    const front = new Front()
    const { hostname, port } = new URL(daemon.url)
    front.#server = http.createServer((request, response) => front.#forward(daemon.url, request, response))
    front.#server.on('upgrade', (request, socket) => {
      const node = connect(port, hostname)
      const lines = request.rawHeaders.flatMap((text, i, all) => (i % 2 ? [] : [`${text}: ${all[i + 1]}`]))
      node.write([`GET ${request.url} HTTP/1.1`, ...lines, '', ''].join('\r\n'))
      for (const [from, to] of [
        [node, socket],
        [socket, node],
      ])
        from.on('error', () => to.destroy()).pipe(to)
    })
    front.#server.listen(0, '127.0.0.1')
    await once(front.#server, 'listening')
    front.url = `http://127.0.0.1:${front.#server.address().port}/`
    return front
  }

  async #forward(url, request, response) {
    this.asked.push(request.url)
    try {
      const answer = await fetch(new URL(this.newer ? renamed(request.url) : request.url, url))
      const headers = Object.fromEntries(answer.headers)
      for (const name of ['content-encoding', 'content-length', 'etag']) delete headers[name]
      let body = Buffer.from(await answer.arrayBuffer())
      if (this.newer && /html|javascript/.test(headers['content-type']))
        body = renamed(body.toString()).replace(/(?<="version":")\w+/, 'newer')
      response.writeHead(answer.status, headers).end(body)
    } catch {
      response.destroy() // as the node itself would
    }
  }

  close() {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

let daemon
let front
let ada
let kept // the name of a script of the newer build

before(async () => {
  daemon = await Daemon.start()
  front = await Front.start(daemon)
})

after(async () => {
  await ada?.close()
  front?.close()
  await daemon?.remove()
})

/** Runs on the page: reports whether a worker controls it and keeps some builds, the latest with a script. */
async function isKept([script, builds]) {
  const { installing, waiting, active } = (await navigator.serviceWorker.getRegistration()) ?? {}
  if (installing || waiting || active?.state !== 'activated' || !navigator.serviceWorker.controller) return false
  const names = await caches.keys()
  if (names.length !== builds) return false
  const latest = await caches.open(names.at(-1))
  const page = await latest.match(location.href)
  return Boolean(await latest.match(`assets/${script}`)) && (await page.text()).includes(script)
}

const mainScript = (player) =>
  player.page.evaluate(() => document.querySelector('script[type=module]').src.split('/').at(-1))

async function forgetHTTPCache(player) {
  const network = await player.page.context().newCDPSession(player.page)
  await network.send('Network.clearBrowserCache')
  await network.detach()
}

test('after joining, the worker keeps the page, and a reload asks the node for the page only', async () => {
  ada = await Player.open(front.url, 'ada')
  assert.equal(await ada.page.evaluate(() => navigator.serviceWorker.controller), null)
  await ada.play()
  await ada.untilAsync(isKept, [await mainScript(ada), 1])
  const languages = await ada.page.evaluate(async () => {
    const cache = await caches.open((await caches.keys())[0])
    return (await cache.keys()).flatMap(({ url }) => /\/(de|es)-[^/]+\.js$/.exec(url)?.[1] ?? [])
  })
  assert.deepEqual(languages.sort(), ['de', 'es'])
  await forgetHTTPCache(ada)
  front.asked = []
  await ada.reload()
  assert.ok(front.asked.includes('/'), 'the page was not asked for')
  assert.deepEqual(
    front.asked.filter((path) => path.startsWith('/assets/')),
    [],
  )
  assert.deepEqual(ada.troubles, [])
})

test('a newer build of the node is used at once, and the one before is kept for other tabs', async () => {
  const old = await mainScript(ada)
  front.newer = true
  await ada.reload()
  assert.equal(await mainScript(ada), renamed(old))
  await ada.untilAsync(isKept, [renamed(old), 2])
  kept = renamed(old)
  // the node has the file no longer
  const fetched = await ada.page.evaluate(async (script) => {
    const answer = await fetch(`assets/${script}`)
    return [answer.status, (await answer.text()).length > 0]
  }, old)
  assert.deepEqual(fetched, [200, true])
  assert.deepEqual(ada.troubles, [])
})

test('without the node the page opens and says so, and joins when the node is back', async () => {
  await daemon.end()
  await forgetHTTPCache(ada)
  ada.mayLoseConnection = true
  await ada.page.reload()
  await ada.until(() => window.__voxeld?.state().chunksMeshed > 0) // the land behind the title
  assert.equal(
    await ada.page.locator('.title .error').innerText(),
    'The node does not answer. Press Play to keep trying.',
  )
  assert.equal(await mainScript(ada), kept)
  await ada.picture('service-worker-without-node')
  await ada.page.click('.title button.primary')
  await ada.page.getByText('The node does not answer. Reconnecting…').waitFor()
  await daemon.run()
  await ada.untilStanding()
  const others = ada.troubles.filter((trouble) => !trouble.includes('net::ERR_EMPTY_RESPONSE')) // of the icon, which is not kept
  assert.deepEqual(others, [])
})

test('browsers offer to install the page', async () => {
  const devtools = await ada.page.context().newCDPSession(ada.page)
  const { errors, data } = await devtools.send('Page.getAppManifest')
  assert.deepEqual(errors, [])
  const problems = await devtools.send('Page.getInstallabilityErrors')
  assert.deepEqual(
    problems.installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito'), // as the pages of tests are
    [],
  )
  const { icons } = JSON.parse(data)
  for (const { src } of icons) {
    const answer = await fetch(new URL(src, daemon.url))
    assert.match(answer.headers.get('content-type'), /^image\//, src)
  }
})
