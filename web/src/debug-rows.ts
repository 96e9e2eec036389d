// The rows of the F3 panel.

import type { Game } from './game'
import { clockText } from './world/clock'
import { chunkOf } from './world/coords'

export interface Meter {
  fps: number
  frames: number
  received: number
  sent: number
  receivedRate: number // bytes/s
  sentRate: number
  measuredAt?: number // ms
}

const DIRECTIONS = ['south +Z', 'west −X', 'north −Z', 'east +X']

export function debugRows(game: Game, meter: Meter): [string, string][] {
  const { body, session, world, meshes, view } = game
  measure(meter, session.connection.received, session.connection.sent)
  const { calls, triangles, quads } = view.stats
  const quarter = ((Math.round(body.yaw / (Math.PI / 2)) % 4) + 4) % 4
  return [
    ['position', `${body.x.toFixed(2)}  ${body.y.toFixed(2)}  ${body.z.toFixed(2)}`],
    ['chunk', `${chunkOf(body.x)}, ${chunkOf(body.z)}`],
    ['facing', DIRECTIONS[quarter] ?? ''],
    ['time', clockText(session.clock.minutesAt(performance.now()))],
    ['frames', `${meter.fps.toFixed(0)}/s`],
    ['drawn', `${calls} calls, ${kilo(triangles)} triangles of ${kilo(2 * quads)}`],
    ['chunks', `${world.size} loaded, ${meshes.meshed} meshed, ${meshes.backlog} waiting`],
    ['meshing', `${meshes.meanDuration.toFixed(1)} ms per chunk`],
    ['ping', session.connection.open ? `${session.connection.ping.toFixed(0)} ms` : 'offline'],
    ['network', `${kilo(meter.receivedRate)}B/s in, ${kilo(meter.sentRate)}B/s out`],
    ['edits', `${session.edits.waiting.length} waiting`],
    ['gateway', session.welcome?.gateway ?? '–'],
    ['server', session.welcome?.server_version ?? '–'],
  ]
}

function measure(meter: Meter, received: number, sent: number): void {
  const now = performance.now()
  const seconds = (now - (meter.measuredAt ?? now)) / 1000
  if (meter.measuredAt !== undefined && seconds < 0.5) return
  if (seconds > 0) {
    meter.receivedRate = (received - meter.received) / seconds
    meter.sentRate = (sent - meter.sent) / seconds
  }
  meter.measuredAt = now
  meter.received = received
  meter.sent = sent
}

function kilo(value: number): string {
  return value < 1000 ? value.toFixed(0) : `${(value / 1000).toFixed(1)} k`
}
