// A player in a real browser. It reads the client's state through window.__voxeld (web/src/game/test-hook.ts), and acts with
// mouse and keys.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

// playwright-core is a dependency of the client's package
const { chromium } = createRequire(new URL('../../web/package.json', import.meta.url))('playwright-core')

const SCREENSHOTS = join(import.meta.dirname, 'screenshots')
const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--ignore-certificate-errors', // ignoreHTTPSErrors is not for service workers
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
]
const SIZE = { width: 960, height: 600 }
const PICTURES = Boolean(process.env.PICTURES)
const PIXELS = 0.5 // of the screen, for each CSS pixel: the browser puts its layers together in software, too
const MIDDLE = [SIZE.width / 2, SIZE.height / 2]
/** The hash of the style 'body {}', which Playwright adds for a screenshot in Firefox, and which the policy of the page forbids. */
const SCREENSHOT_STYLE = 'sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA='
const PATIENCE = { timeout: 150_000, polling: 100 } // long enough for slow machines: it only ends a hang
const FRAME_MS = 60 // a page that draws all the time takes both cores
const MAP_COLOURS = 60 // at least, of a picture of land, with 4 bits a channel
const STUCK_FRAMES = 150 // without arriving: the way is blocked
// Chromium renders in software here, and shares the cores with the daemons: the settings draw less land, and disable the
// adaptive quality so that nothing changes during a test. They are stored where the client stores its settings.
const SETTINGS = { view: 2, renderScale: 0.25, smoothEdges: false, horizon: false, weather: false, adaptive: false }

/** Returns the bytes of the answer to a request, as they travelled; 0 if the browser has been closed. */
export async function bytesOf(request) {
  const sizes = await request.sizes().catch(() => null)
  return sizes ? sizes.responseBodySize + sizes.responseHeadersSize : 0
}

function launchChromium() {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'
  return chromium.launch({ executablePath, args: FLAGS, headless: true })
}

export class Player {
  /**
   * The problems on the page: exceptions, console errors (violations of the Content-Security-Policy among them), failed requests,
   * and requests to other origins. Not surface tiles of a node that has just stopped: the page asks again.
   */
  troubles = []
  /** The kinds of the browser's own dialogs, which are all accepted. */
  dialogs = []
  /** The bytes of all HTTP answers so far, bodies and headers, as they travelled. */
  received = 0
  /** The other nodes that may be asked for surface tiles: a page that goes on at another node has them from there. */
  tilesFrom = []
  /** If true, console errors about the WebSocket connection are ignored. */
  mayLoseConnection = false

  constructor(browser, page, name) {
    this.browser = browser
    this.page = page
    this.name = name
  }

  /**
   * Opens the page in its own browser. Pages of one browser share a rendering thread: while it renders the first page in
   * software, the second page waits half a minute for its first WebGL call. launch starts the browser; device has further options
   * of its context; settings replace some of SETTINGS; frameMs is the least time from frame to frame; prepare is called with the
   * page before it opens url.
   */
  static async open(
    url,
    name,
    { launch = launchChromium, device = {}, settings = {}, frameMs = FRAME_MS, prepare = null } = {},
  ) {
    const browser = await launch()
    const context = await browser.newContext({
      viewport: SIZE,
      deviceScaleFactor: PIXELS,
      ignoreHTTPSErrors: true,
      ...device,
    })
    await context.addInitScript(
      ([settings, frameMs]) => {
        if (origin === 'null') return // about:blank has no storage in Firefox
        if (!localStorage.getItem('voxeld.settings')) localStorage.setItem('voxeld.settings', JSON.stringify(settings))
        const draw = window.requestAnimationFrame.bind(window)
        let last = 0
        window.requestAnimationFrame = (callback) => {
          const frame = (now) => {
            last = now
            callback(now)
            window.__afterFrame?.(now)
          }
          return setTimeout(() => draw(frame), last + frameMs - performance.now())
        }
      },
      [{ ...SETTINGS, ...settings }, frameMs],
    )
    const page = await context.newPage()
    page.setDefaultTimeout(PATIENCE.timeout) // with software rendering, opening a page is slow on a busy machine
    const player = new Player(browser, page, name)
    page.on('pageerror', (error) => {
      if (!error.message.includes(SCREENSHOT_STYLE)) player.troubles.push(`exception: ${error.stack}`)
    })
    page.on('console', (message) => {
      if (message.type() !== 'error') return
      if (player.mayLoseConnection && /WebSocket connection/.test(message.text())) return
      const asked = message.location().url
      if (asked && new URL(asked).pathname.startsWith('/surface') && /net::ERR_/.test(message.text())) return
      player.troubles.push(`console: ${message.text()}`)
    })
    page.on('dialog', (dialog) => {
      player.dialogs.push(dialog.type())
      void dialog.accept()
    })
    page.on('request', (request) => {
      const address = request.url()
      const mayAsk = [url, ...player.tilesFrom].some((own) => address.startsWith(new URL(own).origin))
      if (!mayAsk && !/^(data|blob):/.test(address)) player.troubles.push(`foreign request: ${address}`)
    })
    page.on('requestfinished', async (request) => {
      const bytes = await bytesOf(request) // first: += would read the sum before waiting
      player.received += bytes
    })
    page.on('response', (response) => {
      if (response.status() >= 400) player.troubles.push(`${response.status()}: ${response.url()}`)
    })
    try {
      await prepare?.(page)
      await page.goto(url)
    } catch (reason) {
      await browser.close()
      throw reason
    }
    return player
  }

  close() {
    return this.browser.close()
  }

  /**
   * Joins from the title screen, and waits until the surrounding land is drawn and the player stands on it. The button is pressed at
   * once: a click of the mouse waits for some frames of the title's world. The tests browser and first-minute click, and touch taps.
   */
  async play() {
    await this.page.waitForFunction(() => window.__voxeld)
    await this.page.fill('.title input.field', this.name)
    await this.page.dispatchEvent('.title button.primary', 'click')
    await this.untilStanding()
    await this.page.mouse.move(...MIDDLE) // a click must not move it: that turns the camera
    await this.#lockPointer()
  }

  /** Locks the pointer with a click, if joining took so long (5 s) that the browser did not: the first click would only do that. */
  async #lockPointer() {
    const isLocked = () => document.pointerLockElement !== null
    if (await this.page.evaluate(isLocked)) return
    await this.page.mouse.click(...MIDDLE)
    await this.until(isLocked)
  }

  untilStanding() {
    return this.until(() => {
      const { connected, screen, chunksMeshed, meshBacklog, onGround } = window.__voxeld.state()
      return connected && screen === 'play' && chunksMeshed >= 9 && meshBacklog === 0 && onGround
    })
  }

  /** Waits until some more frames have been drawn. */
  async nextFrames(count) {
    const { frames } = await this.state()
    await this.until((last) => window.__voxeld.state().frames >= last, frames + count)
  }

  /** Waits until all edits are acknowledged. */
  settled() {
    return this.until(() => window.__voxeld.state().pendingEdits === 0)
  }

  async reload() {
    await this.page.reload()
    await this.play()
  }

  state() {
    return this.page.evaluate(() => window.__voxeld.state())
  }

  blockAt([x, y, z]) {
    return this.page.evaluate((at) => window.__voxeld.blockAt(...at), [x, y, z])
  }

  /** Waits until a condition, evaluated on the page, is true. */
  async until(condition, argument) {
    try {
      return await this.page.waitForFunction(condition, argument, PATIENCE)
    } catch (error) {
      const said = await this.page.locator('.chat-line').allTextContents()
      throw new Error(`${condition} is not true. The chat: ${said.slice(-8).join(' / ')}`, { cause: error })
    }
  }

  /** Waits until an asynchronous condition, evaluated on the page, is true. waitForFunction would take its promise for the result. */
  async untilAsync(condition, argument) {
    const end = performance.now() + PATIENCE.timeout
    while (!(await this.page.evaluate(condition, argument))) {
      if (performance.now() > end) throw new Error(`${condition} is not true`)
      await pause(PATIENCE.polling)
    }
  }

  /** Waits until a line of the chat contains a text. */
  untilChat(text) {
    return this.until((text) => {
      const lines = [...document.querySelectorAll('.chat-line')]
      return lines.some((line) => line.textContent.includes(text))
    }, text)
  }

  /** Types a line into the chat. */
  async say(text) {
    await this.page.keyboard.press('KeyT')
    await this.page.keyboard.type(text)
    await this.page.keyboard.press('Enter')
  }

  /** Registers the name by command: pages do so by themselves only once their player does something. */
  async register() {
    await this.say('/register')
    await this.untilChat('is yours: nobody else can use it')
  }

  /** Waits until a canvas of the map shows all its tiles, with many colours. */
  untilMap() {
    return this.until((least) => {
      const canvas = document.querySelector('.map-canvas')
      if (!canvas?.width || document.querySelector('aside')?.checkVisibility() === false) return false
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
      const colours = new Set()
      for (let i = 0; i < data.length; i += 4)
        colours.add(((data[i] >> 4) << 8) | ((data[i + 1] >> 4) << 4) | (data[i + 2] >> 4))
      return colours.size > least && !/loading/i.test(document.querySelector('main.public-map, .map')?.innerText)
    }, MAP_COLOURS)
  }

  async openMap() {
    await this.page.keyboard.press('KeyM')
    await this.until(() => window.__voxeld.state().screen === 'map')
    await this.untilMap()
  }

  async closeMap() {
    await this.page.keyboard.press('Escape')
    await this.until(() => window.__voxeld.state().screen === 'play')
  }

  untilBlock(at, block) {
    return this.until(([at, block]) => window.__voxeld.blockAt(...at) === block, [at, block])
  }

  /** Presses or releases the keys to walk and jump. */
  async #keys(pressed) {
    for (const key of ['KeyW', 'Space']) await this.page.keyboard[pressed ? 'down' : 'up'](key)
  }

  /** Walks until the player is some blocks from the start, jumping over obstacles; go(true) starts and go(false) stops. */
  async walk(blocks, go = (walking) => this.#keys(walking)) {
    const { x, z } = await this.state()
    for (const side of [
      [1, 0],
      [0, 1],
      [-1, 0],
      [0, -1],
    ]) {
      await this.page.evaluate(([dx, dz]) => {
        const { x, y, z } = window.__voxeld.state()
        window.__voxeld.lookAt(x + 20 * dx, y + 1, z + 20 * dz)
      }, side)
      await go(true)
      const { frames } = await this.state()
      const end = await this.until(
        ([x, z, blocks, last]) => {
          const now = window.__voxeld.state()
          return Math.hypot(now.x - x, now.z - z) >= blocks ? 'there' : now.frames > last && 'stuck'
        },
        [x, z, blocks, frames + STUCK_FRAMES],
      )
      const arrived = (await end.jsonValue()) === 'there'
      await go(false)
      if (arrived) break
    }
    await this.until(() => window.__voxeld.state().onGround)
    return this.state()
  }

  /** Waits until position and angles stay the same over two frames. */
  stand() {
    return this.until(() => {
      const { frames, x, y, z, yaw, pitch } = window.__voxeld.state()
      const now = [x, y, z, yaw, pitch].join()
      const before = window.__stood
      if (!before || frames > before.frames + 1) window.__stood = { frames, now }
      return before && frames > before.frames + 1 && now === before.now
    })
  }

  /** Aims at a full block of the ground, nearby, not below the player and not behind another, once there is one; returns its position. */
  async aimAtGround(not = []) {
    await this.stand()
    const found = await this.until((not) => {
      const { x, y, z } = window.__voxeld.state()
      const [fx, fy, fz] = [x, y, z].map(Math.floor)
      for (let far = 2; far <= 4; far++) {
        for (let dz = -far; dz <= far; dz++) {
          for (let dx = -far; dx <= far; dx++) {
            if (Math.max(Math.abs(dx), Math.abs(dz)) !== far) continue
            for (const dy of [-1, 0, -2]) {
              const at = [fx + dx, fy + dy, fz + dz]
              if (not.some((other) => other.every((v, i) => v === at[i]))) continue
              if (![1, 2, 3, 4, 8, 13, 22].includes(window.__voxeld.blockAt(...at))) continue
              window.__voxeld.lookAt(...at)
              const aim = window.__voxeld.aim()
              const hits = aim && aim.x === at[0] && aim.y === at[1] && aim.z === at[2] && aim.normal[1] === 1
              if (hits && !window.__voxeld.state().aimedPlayer) return at
            }
          }
        }
      }
      return null
    }, not)
    return found.jsonValue()
  }

  async click(button) {
    const before = (await this.state()).acknowledgedEdits
    await this.page.mouse.down({ button })
    await this.page.mouse.up({ button })
    await this.until((before) => {
      const { acknowledgedEdits, pendingEdits } = window.__voxeld.state()
      return acknowledgedEdits > before && pendingEdits === 0
    }, before)
  }

  /** Saves a screenshot for people to look at, if PICTURES is set: each takes half a second. */
  async picture(name) {
    if (PICTURES) await this.screenshot(name)
  }

  screenshot(name) {
    return this.page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) })
  }

  /** Saves a screenshot; returns the number of its distinct colours, with 4 bits per channel. */
  async coloursOf(name) {
    const png = await this.screenshot(name)
    return this.page.evaluate(async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
      const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }))
      const context = new OffscreenCanvas(image.width, image.height).getContext('2d')
      context.drawImage(image, 0, 0)
      const { data } = context.getImageData(0, 0, image.width, image.height)
      const colours = new Set()
      for (let i = 0; i < data.length; i += 4)
        colours.add(((data[i] >> 4) << 8) | ((data[i + 1] >> 4) << 4) | (data[i + 2] >> 4))
      return colours.size
    }, png.toString('base64'))
  }

  /** Returns the median luminance of a part of the world, see luminances. */
  async medianLuminance(name, part) {
    return (await this.luminances(name, part))[0].median
  }

  /**
   * Takes a screenshot of the world, without what is drawn over it. Returns the luminance (Rec. 709, 0 to 255) of rows of a part, from the
   * top: the median, and what 95 % of the pixels do not exceed.
   */
  async luminances(name, part = { left: 0, top: 0, right: 1, bottom: 1 }, rows = 1) {
    const hide = (hidden) => this.page.$eval('#hud', (hud, hidden) => (hud.style.opacity = hidden ? 0 : ''), hidden)
    await hide(true)
    const png = await this.screenshot(name)
    await hide(false)
    return this.page.evaluate(
      async ([base64, { left, top, right, bottom }, rows]) => {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
        const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }))
        const [x, y] = [Math.round(left * image.width), Math.round(top * image.height)]
        const width = Math.round(right * image.width) - x
        const height = Math.floor((Math.round(bottom * image.height) - y) / rows)
        const context = new OffscreenCanvas(width, rows * height).getContext('2d')
        context.drawImage(image, -x, -y)
        return Array.from({ length: rows }, (_, row) => {
          const { data } = context.getImageData(0, row * height, width, height)
          const all = Float32Array.from(
            { length: data.length / 4 },
            (_, i) => 0.2126 * data[4 * i] + 0.7152 * data[4 * i + 1] + 0.0722 * data[4 * i + 2],
          ).sort()
          return { median: all[all.length >> 1], bright: all[Math.floor(0.95 * all.length)] }
        })
      },
      [png.toString('base64'), part, rows],
    )
  }
}
