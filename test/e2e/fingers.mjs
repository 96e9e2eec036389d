// Fingers on the page of a player, by the DevTools protocol: Playwright itself can only tap.

export class Fingers {
  #down = [] // those that press something now
  #ids = 0

  constructor(page, session) {
    this.page = page
    this.session = session
  }

  static async on(page) {
    return new Fingers(page, await page.context().newCDPSession(page))
  }

  #send(type, touchPoints) {
    return this.session.send('Input.dispatchTouchEvent', { type, touchPoints })
  }

  /** Returns a point of an element; offset is [0, 0] for its middle, and 1 for its edges. */
  async #pointOf(selector, [x, y] = [0, 0]) {
    await this.page.waitForSelector(selector, { state: 'visible' })
    const box = await this.page.locator(selector).boundingBox()
    return [box.x + (box.width * (1 + x)) / 2, box.y + (box.height * (1 + y)) / 2]
  }

  async tap(selector) {
    await this.tapAt(await this.#pointOf(selector))
  }

  async tapAt([x, y]) {
    await this.page.touchscreen.tap(x, y)
  }

  async drag([x, y], [toX, toY], steps = 6) {
    // without waiting for each answer: on a slow machine, that is long enough for a finger that rests
    const moves = Array.from({ length: steps }, (_, i) => (i + 1) / steps)
    await Promise.all([
      this.#send('touchStart', [{ x, y }]),
      ...moves.map((part) => this.#send('touchMove', [{ x: x + (toX - x) * part, y: y + (toY - y) * part }])),
      this.#send('touchEnd', []),
    ])
  }

  /** Rests on a point until something has happened. */
  async rest([x, y], happened) {
    await this.#send('touchStart', [{ x, y }])
    await happened()
    await this.#send('touchEnd', [])
  }

  /** Adds a finger, which stays on an element until lift. */
  async press(selector, offset) {
    const [x, y] = await this.#pointOf(selector, offset)
    this.#down.push({ x, y, id: this.#ids++ })
    await this.#send('touchStart', this.#down)
  }

  /** Lifts all fingers. */
  async lift() {
    this.#down = []
    await this.#send('touchEnd', [])
  }
}
