// The rows of the F3 panel.

import type { MeshScheduler } from '../mesh/scheduler'
import type { Traffic } from '../net/link'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { View } from '../render/view'
import { clockText } from '../world/clock'
import { chunkOf } from '../world/coords'
import type { World } from '../world/world'
import type { FrameCounter } from './frame-loop'

const MIN_INTERVAL_MS = 500 // of a rate
const DIRECTIONS = ['south +Z', 'west −X', 'north −Z', 'east +X']

export class DebugRows {
  private readonly rate = new TrafficRate()

  constructor(
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Session,
    private readonly meshes: MeshScheduler,
    private readonly view: View,
    private readonly counter: FrameCounter,
  ) {}

  at(now: number): [name: string, value: string][] {
    const { body, session, world, meshes, rate } = this
    const { connection, welcome } = session
    const { calls, triangles, quads } = this.view.stats
    const quarter = ((Math.round(body.yaw / (Math.PI / 2)) % 4) + 4) % 4
    rate.measure(connection.traffic, now)
    return [
      ['position', `${body.x.toFixed(2)}  ${body.y.toFixed(2)}  ${body.z.toFixed(2)}`],
      ['chunk', `${chunkOf(body.x)}, ${chunkOf(body.z)}`],
      ['facing', DIRECTIONS[quarter] ?? ''],
      ['time', clockText(session.clock.minutesAt(now))],
      ['frames', `${this.counter.rate.toFixed(0)}/s`],
      ['drawn', `${calls} calls, ${kilo(triangles)} triangles of ${kilo(2 * quads)}`],
      ['chunks', `${world.size} loaded, ${meshes.meshed} meshed, ${meshes.backlog} waiting`],
      ['meshing', `${meshes.meanDuration.toFixed(1)} ms per chunk`],
      ['ping', connection.open ? `${connection.traffic.ping.toFixed(0)} ms` : 'offline'],
      ['network', `${kilo(rate.received)}B/s in, ${kilo(rate.sent)}B/s out`],
      ['edits', `${session.edits.waiting.length} waiting`],
      ['gateway', welcome?.gateway ?? '–'],
      ['server', welcome?.server_version ?? '–'],
    ]
  }
}

class TrafficRate {
  private before: { received: number; sent: number; at: number } | null = null
  received = 0 // bytes/s
  sent = 0

  measure({ received, sent }: Traffic, now: number): void {
    const { before } = this
    if (before && now - before.at < MIN_INTERVAL_MS) return
    if (before) {
      const seconds = (now - before.at) / 1000
      this.received = (received - before.received) / seconds
      this.sent = (sent - before.sent) / seconds
    }
    this.before = { received, sent, at: now }
  }
}

function kilo(value: number): string {
  return value < 1000 ? value.toFixed(0) : `${(value / 1000).toFixed(1)} k`
}
