// A link to a daemon with delay and loss, as TCP shows them: what is lost is sent again, and what was sent after it waits. A network namespace
// with netem would need root, and a module of the kernel.

import { once } from 'node:events'
import { connect, createServer } from 'node:net'

const SEGMENT = 1448 // bytes in a packet
const AGAIN_MS = [200, 400] // until a lost packet has been sent again: a round trip, or a timeout

export class SlowLink {
  lost = 0
  #server
  #sockets = new Set()
  #random = 1

  /** Opens a port that leads to a daemon; each way takes delay ms, and loss is the share of packets that are lost. */
  static async open(daemon, delay, loss) {
    const link = new SlowLink()
    const node = new URL(daemon.url)
    link.#server = createServer((client) => {
      const server = connect(node.port, node.hostname)
      for (const [from, to] of [
        [client, server],
        [server, client],
      ]) {
        link.#sockets.add(from)
        from.setNoDelay()
        link.#carry(from, to, delay, loss)
      }
    })
    link.#server.listen(0, '127.0.0.1')
    await once(link.#server, 'listening')
    link.url = `http://127.0.0.1:${link.#server.address().port}/`
    return link
  }

  /** Returns a pseudo-random number from 0 to 1. All connections share the sequence, in the order in which their packets come. */
  #next() {
    this.#random = (this.#random * 16807) % 2147483647
    return this.#random / 2147483647
  }

  #carry(from, to, delay, loss) {
    const queue = [] // what is to be done when, in order
    let due = 0 // of the last packet
    const run = () => {
      while (queue[0]?.due <= performance.now()) queue.shift().act()
      if (queue.length > 0) setTimeout(run, queue[0].due - performance.now())
    }
    const later = (again, act) => {
      due = Math.max(due, performance.now() + delay) + again
      if (queue.push({ due, act }) === 1) setTimeout(run, due - performance.now())
    }
    from.on('data', (data) => {
      for (let i = 0; i < data.length; i += SEGMENT) {
        const lost = this.#next() < loss
        if (lost) this.lost++
        later(lost ? AGAIN_MS[0] + (AGAIN_MS[1] - AGAIN_MS[0]) * this.#next() : 0, () =>
          to.write(data.subarray(i, i + SEGMENT)),
        )
      }
    })
    from.on('end', () => later(0, () => to.end()))
    from.on('error', () => to.destroy())
    from.on('close', () => {
      this.#sockets.delete(from)
      later(0, () => to.destroy())
    })
  }

  close() {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
