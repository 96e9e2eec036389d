// The rows of the F3 panel.

import type { MeshScheduler } from '../mesh/scheduler'
import type { Traffic } from '../net/link'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { View } from '../render/view'
import { laterTexts } from '../text/later-texts'
import { clockText } from '../world/clock'
import { chunkOf } from '../world/coords'
import type { World } from '../world/world'
import type { FrameCounter } from './frame-loop'

const MIN_INTERVAL_MS = 500 // of a rate
const texts = laterTexts.figures

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
      [texts.position, `${body.x.toFixed(2)}  ${body.y.toFixed(2)}  ${body.z.toFixed(2)}`],
      [texts.chunk, `${chunkOf(body.x)}, ${chunkOf(body.z)}`],
      [texts.facing, texts.directions[quarter] ?? ''],
      [texts.time, clockText(session.clock.minutesAt(now))],
      [texts.frames, texts.perSecond(this.counter.rate.toFixed(0))],
      [texts.drawn, texts.calls(calls, kilo(triangles), kilo(2 * quads))],
      [texts.chunks, texts.counts(world.size, meshes.meshed, meshes.backlog)],
      [texts.meshing, texts.perChunk(meshes.meanDuration.toFixed(1))],
      [texts.ping, connection.open ? `${connection.traffic.ping.toFixed(0)} ms` : texts.offline],
      [texts.network, texts.traffic(kilo(rate.received), kilo(rate.sent))],
      [texts.edits, texts.waiting(session.edits.waiting.length)],
      [texts.gateway, welcome?.gateway ?? '–'],
      [texts.server, welcome?.server_version ?? '–'],
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
