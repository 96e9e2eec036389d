// A WebSocket that the test controls, for the tests of the connection.

import { afterEach, beforeEach, vi } from 'vitest'
import { decodeCBOR } from '../src/net/cbor'
import { CLIENT_MOVE, type Welcome } from '../src/net/protocol'

export const ORIGIN = 'ws://a:8080/ws'

interface Sent {
  type: string
  [field: string]: unknown
}

export class Socket {
  static all: Socket[] = []
  sent: Sent[] = []
  closed = false
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: (() => void) | null = null
  constructor(readonly url: string) {
    Socket.all.push(this)
  }
  static get last(): Socket {
    return Socket.all.at(-1)!
  }
  send(data: string | Uint8Array<ArrayBuffer>) {
    if (typeof data === 'string') this.sent.push(JSON.parse(data) as Sent)
    else if (data[0] === CLIENT_MOVE) this.sent.push(moveOf(data))
    else this.sent.push(decodeCBOR(data) as Sent)
  }
  close() {
    this.closed = true
  }
  receive(message: object) {
    this.onmessage?.({ data: JSON.stringify(message) })
  }
  /** Opens the socket and sends a welcome. */
  welcome(fields: object = {}) {
    this.onopen?.()
    this.receive({ ...WELCOME, ...fields })
  }
  sentOf(type: string) {
    return this.sent.filter((message) => message.type === type)
  }
}

function moveOf(data: Uint8Array) {
  const view = new DataView(data.buffer, data.byteOffset)
  return { type: 'move', x: view.getFloat64(1, true), y: view.getFloat64(9, true), z: view.getFloat64(17, true) }
}

export const WELCOME: Welcome = {
  type: 'welcome',
  version: 1,
  world: 'w1',
  world_name: 'voxels',
  sections: 1,
  player: 'p1',
  name: 'ada',
  guest: true,
  next_seq: 100,
  pose: { x: 8, y: 12, z: 8, yaw: 0, pitch: 0 },
  view: 1,
  reach: 8,
  tick_ms: 50,
  time_of_day: 0,
  day_ms: 1000,
  gateway: 'g',
  server_version: 't',
}
export const AS = { name: 'ada', view: 1, identity: null, skin: 0 }

/** Replaces WebSocket and timers in each test of a file. */
export function fakeNetwork(): void {
  beforeEach(() => {
    vi.useFakeTimers()
    vi.stubGlobal('window', globalThis)
    vi.stubGlobal('WebSocket', Socket)
    Socket.all = []
  })

  afterEach(() => {
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })
}
