// Replaces the time of day in what a node sends to a page, which follows from the clock.

/** The length of a day, in ms, during which the time stands still, nearly. */
export const STILL = 1e10

/** Sets the minutes since midnight and the length of the day; times may change later, for the next session. */
export async function setTimes(page, times) {
  await page.routeWebSocket(/\/ws/, (socket) => {
    socket.connectToServer().onMessage((message) => {
      if (typeof message === 'string') return socket.send(message)
      const { minutes, dayMs } = times
      return socket.send(replaceNumber(replaceNumber(message, 'time_of_day', minutes), 'day_ms', dayMs))
    })
  })
}

/** Returns a message in CBOR in which a field has another number, if it has the field. */
function replaceNumber(message, field, number) {
  const key = Buffer.from(field)
  const at = message.indexOf(Buffer.concat([Buffer.from([0x60 + key.length]), key])) + 1 + key.length
  if (at <= key.length) return message
  const value = Buffer.alloc(9, 0xfb) // a double
  value.writeDoubleBE(number, 1)
  const info = message[at] & 31 // of the number there: its length, if not itself
  const length = info < 24 ? 1 : 1 + 2 ** (info - 24)
  return Buffer.concat([message.subarray(0, at), value, message.subarray(at + length)])
}
