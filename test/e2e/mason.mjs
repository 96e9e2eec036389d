// A player without a browser window, who builds.

/**
 * Builds a tower at the spawn in a session of its own, from a page, on a node: the mason rises, and places a block after the other beside
 * them, so many blocks to the east, and to the south, too, if given. Returns the place of the highest.
 */
export function buildTower(page, url, block, floors, east = 2, south = 0) {
  return page.evaluate(
    async ([url, block, floors, east, south]) => {
      const socket = new WebSocket(url)
      const send = (message) => socket.send(JSON.stringify(message))
      const next = (wanted) =>
        new Promise((done, failed) => {
          const listen = ({ data }) => {
            const message = JSON.parse(data)
            if (message.type === 'failure') failed(new Error(message.message))
            if (!wanted(message)) return
            socket.removeEventListener('message', listen)
            done(message)
          }
          socket.addEventListener('message', listen)
        })
      await new Promise((done) => socket.addEventListener('open', done))
      const welcomed = next(({ type }) => type === 'welcome')
      send({ type: 'join', version: 2, name: 'mason', view: 2, encoding: 'json' })
      const { pose, next_seq } = await welcomed
      const own = [pose.x, pose.z].map((v) => Math.floor(v / 32)).join()
      await next(({ type, chunk }) => type === 'chunk' && chunk.join() === own)
      const [x, y, z] = [pose.x + east, pose.y, pose.z + south].map(Math.floor)
      for (let i = 0; i < floors; i++) {
        const acked = next(({ type }) => type === 'ack')
        send({ type: 'move', ...pose, y: pose.y + i })
        send({ type: 'edit', seq: next_seq + i, x, y: y + i, z, block })
        const ack = await acked
        if (ack.refused || ack.reason) throw new Error(JSON.stringify(ack))
        await new Promise((done) => setTimeout(done, 120)) // not faster than players fly
      }
      socket.close()
      return { x, y: y + floors - 1, z }
    },
    [new URL('ws', url.replace(/^http/, 'ws')).href, block, floors, east, south],
  )
}
