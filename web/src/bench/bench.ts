// The benchmark page, ?bench: joins the world as a guest, measures meshing and drawing, and shows the figures as a table. It is
// loaded only when asked for. window.__bench has the rows once all are measured. ?bench&view=8 chooses the view distance.

import { Land } from '../mesh/land'
import { lightChunk } from '../mesh/light'
import { PARTS, WORDS_PER_QUAD, meshSection } from '../mesh/mesher'
import { MeshScheduler } from '../mesh/scheduler'
import { copyVolume, newVolume } from '../mesh/volume'
import { indexedDBStorage } from '../net/cache-storage'
import { ChunkCache } from '../net/chunk-cache'
import { gatewayOf } from '../net/endpoints'
import { Session, type SessionEvents } from '../net/session'
import { Body } from '../player/body'
import { Avatars } from '../render/avatars'
import { View } from '../render/view'
import { AIR } from '../world/blocks'
import { SIZE } from '../world/coords'
import { hash } from '../world/hash'
import { World } from '../world/world'
import { meshObjects, meshTypedArrays, nest } from './meshers'

interface Result {
  rows: [measure: string, value: string][]
  done: boolean
  error: string
  culling?: Culling
}

/** Frames with and without culling, compared. */
interface Culling {
  frames: number
  triangles: number
  without: number
  calls: number // the most
  pixels: number // that differ
  holes: number // those of them that are side by side
}

declare global {
  interface Window {
    __bench?: Result
  }
}

const FLIGHT_FRAMES = 60
const FLIGHT_MS = 60_000
const FLIGHT_SPEED = 17 // blocks a second
const MESH_RUNS = 5 // of which the shortest time of each section counts: other programs take the cores away
const EDITS = 200
const BUILDERS = 75
const BUILDER_FRAMES = 30
const NOON = 12 * 60
const STONE = 1

export async function runBench(canvas: HTMLCanvasElement, hud: HTMLElement): Promise<void> {
  const result: Result = { rows: [], done: false, error: '' }
  window.__bench = result
  const table = document.createElement('table')
  table.style.cssText =
    'position:fixed;left:1rem;top:1rem;padding:.6rem;background:#10161dd9;color:#fff;font:14px/1.5 system-ui,sans-serif'
  hud.replaceChildren(table)
  const add = (measure: string, value: string) => {
    result.rows.push([measure, value])
    const row = table.insertRow()
    row.insertCell().textContent = measure
    row.insertCell().textContent = value
    for (const cell of row.cells) cell.style.cssText = 'padding-left:1.5rem;text-align:right'
  }
  try {
    await new Bench(canvas, gatewayOf(location), add).run()
  } catch (reason) {
    result.error = String(reason)
    add('failed', result.error)
  }
  result.done = true
}

class Bench {
  private readonly world = new World()
  private readonly body = new Body()
  private readonly avatars = new Avatars(this.world)
  private readonly view: View
  private readonly meshes: MeshScheduler
  private readonly session: Session
  private readonly distance = Number(new URLSearchParams(location.search).get('view')) || 6
  private refused = ''

  constructor(
    canvas: HTMLCanvasElement,
    url: string,
    private readonly add: (measure: string, value: string) => void,
  ) {
    this.view = new View(canvas, false)
    this.view.add(this.avatars.meshes)
    this.view.addAid(this.avatars.names)
    this.view.setScale(0.5)
    this.meshes = new MeshScheduler(this.world, this.view.terrain, () => (this.refused = 'a worker has failed'))
    const events: SessionEvents = {
      joined: ({ view }) => this.view.setDistance(view),
      disconnected: (text) => (this.refused = text),
      refused: (text) => (this.refused = text),
      toast: () => undefined,
      chat: () => undefined,
      line: () => undefined,
      hit: () => undefined,
      gift: () => undefined,
      committed: () => undefined,
      rejected: () => undefined,
      notice: () => undefined,
      permissions: () => undefined,
      rollback: () => undefined,
      history: () => undefined,
    }
    this.session = new Session(url, this.world, this.avatars, this.body, events, new ChunkCache(indexedDBStorage()))
  }

  /** Measures everything, or after loading only one part: ?bench&only=edit. */
  async run(): Promise<void> {
    await this.load()
    await this.view.compile()
    const parts: Record<string, () => void | Promise<void>> = {
      mesh: () => this.compareMeshers(),
      culling: () => this.compareCulling(),
      circle: () => this.circle(),
      edit: () => this.edit(),
      build: () => this.build(),
      crowd: () => this.crowd(),
      flight: () => this.fly(),
    }
    const only = new URLSearchParams(location.search).get('only')
    for (const [name, part] of Object.entries(parts)) if (!only || name === only) await part()
    this.session.connection.leave()
  }

  private async load(): Promise<void> {
    const start = performance.now()
    this.session.join({ name: 'bench', view: this.distance, identity: null, skin: 0 })
    const chunks = (2 * this.distance + 1) ** 2
    await this.until(() => this.world.size >= chunks && this.meshes.backlog === 0, 120_000)
    const { sections, loading } = this.meshes.stats
    this.add(`view ${this.distance}: chunks loaded and meshed after`, ms(performance.now() - start))
    this.add('received for them', kilobytes(this.session.connection.traffic.received))
    this.add('workers: time per section, with light, mean', ms(loading / sections))
    this.add('vertex data on the GPU', kilobytes(this.view.terrain.bytes))
    let blocks = 0
    for (const { sections } of this.world.all())
      for (const section of sections) if (typeof section !== 'number') blocks += section.byteLength
    this.add('blocks of the loaded chunks, on the main thread', kilobytes(blocks))
  }

  /** Meshes the same sections, those that are not air, in three ways. */
  private compareMeshers(): void {
    const times = { ...this.meshAll(), typed: [] as number[], objects: [] as number[] }
    for (let again = 1; again < MESH_RUNS; again++) {
      const { mesh, ours } = this.meshAll()
      times.mesh = times.mesh.map((time, i) => Math.min(time, mesh[i] ?? time))
      times.ours = times.ours.map((time, i) => Math.min(time, ours[i] ?? time))
    }
    const quads = { ours: times.quads, simple: 0 }
    const volume = newVolume()
    let section = 0
    for (const chunk of times.land.all()) {
      for (let s = 0; s < chunk.blocks.length; s++) {
        if (chunk.blocks[s] === AIR) continue
        copyVolume(times.land, chunk, s, volume)
        const typed = timed(() => meshTypedArrays(volume))
        times.typed.push(typed.time)
        quads.simple += typed.value
        if (section++ % 4 !== 0) continue // objects are slow: every fourth section
        const nested = nest(volume)
        times.objects.push(timed(() => meshObjects(nested)).time)
      }
    }
    const both = (list: number[]) => `${ms(quantile(list, 0.5))}, ${ms(quantile(list, 0.99))}`
    this.add(
      `mesh of a section with light, shortest of ${MESH_RUNS}, p50, p99 of ${times.ours.length}`,
      both(times.ours),
    )
    this.add('the mesh without the light', both(times.mesh))
    this.add('Algorithm 4, an object per block, without light', both(times.objects))
    this.add('plain typed arrays, without light', both(times.typed))
    this.add('ours as a share of Algorithm 4, p50', percent(quantile(times.ours, 0.5) / quantile(times.objects, 0.5)))
    this.add('quads: ours, one per face', `${quads.ours}, ${quads.simple}`)
  }

  /** Lights and meshes all chunks. ours: the times of the sections, with their share of the chunk's light. */
  private meshAll(): { land: Land; quads: number; mesh: number[]; ours: number[] } {
    const result = { land: new Land(), quads: 0, mesh: [] as number[], ours: [] as number[] }
    const { land } = result
    const lit = new Map<number, number>() // by slot: the time spent on light, per section
    for (const { x, z, sections } of this.world.all()) {
      const filled = sections.filter((section) => section !== AIR).length
      const chunk = timed(() => {
        const added = land.add(x, z, 1, true, sections)
        lightChunk(added)
        return added
      })
      lit.set(chunk.value.slot, chunk.time / Math.max(1, filled))
    }
    const volume = newVolume()
    for (const chunk of land.all()) {
      for (let s = 0; s < chunk.blocks.length; s++) {
        if (chunk.blocks[s] === AIR) continue
        const { value, time } = timed(() => {
          copyVolume(land, chunk, s, volume)
          return meshSection(volume)
        })
        result.quads += PARTS.reduce((sum, part) => sum + value[part].length / WORDS_PER_QUAD, 0)
        result.mesh.push(time)
        result.ours.push(time + (lit.get(chunk.slot) ?? 0))
      }
    }
    return result
  }

  /** Draws views with and without culling: they must be the same. */
  private compareCulling(): void {
    const { x, y, z } = this.body
    const [caveX, caveY, caveZ] = this.cave()
    const places: [string, number, number, number][] = [
      ['at spawn', x, y + 1.6, z],
      ['from a hill', ...this.hill()],
      ['from above', x, y + 90, z],
      ['in a cave', caveX, caveY, caveZ],
    ]
    const sum: Culling = { frames: 0, triangles: 0, without: 0, calls: 0, pixels: 0, holes: 0 }
    for (const [name, px, py, pz] of places) {
      const counts = { with: 0, without: 0 }
      for (let turn = 0; turn < 8; turn++) {
        const pose = [px, py, pz, (turn * Math.PI) / 4, turn % 2 ? -0.5 : 0] as const
        const culled = this.draw(...pose)
        const pixels = this.view.readPixels()
        this.view.terrain.setCulling(false)
        const whole = this.draw(...pose)
        const all = this.view.readPixels()
        this.view.terrain.setCulling(true)
        counts.with += culled.triangles / 8000
        counts.without += whole.triangles / 8000
        sum.frames++
        sum.triangles += culled.triangles
        sum.without += whole.triangles
        sum.calls = Math.max(sum.calls, culled.calls)
        let before = -8
        for (let i = 0; i < all.length; i += 4) {
          if (all[i] === pixels[i] && all[i + 1] === pixels[i + 1] && all[i + 2] === pixels[i + 2]) continue
          sum.pixels++
          if (before === i - 4) sum.holes++
          before = i
        }
      }
      this.add(
        `${name}, mean of 8 directions: triangles, and without culling`,
        `${Math.round(counts.with)} k, ${Math.round(counts.without)} k`,
      )
    }
    if (window.__bench) window.__bench.culling = sum
    this.add(`pixels that differ by culling, in ${sum.frames} frames, and side by side`, `${sum.pixels}, ${sum.holes}`)
    this.add('most draw calls of them', String(sum.calls))
  }

  /** Returns the highest place of the loaded land, at eye height. */
  private hill(): [number, number, number] {
    let best: [number, number, number] = [this.body.x, 0, this.body.z]
    for (const { x, z } of this.world.all()) {
      const [bx, bz] = [x * SIZE + SIZE / 2, z * SIZE + SIZE / 2]
      const y = this.surface(bx, bz)
      if (y > best[1]) best = [bx + 0.5, y + 1, bz + 0.5]
    }
    return [best[0], best[1] + 1.6, best[2]]
  }

  /** Returns a place in the dark: air with a roof of rock, the nearest to the middle. */
  private cave(): [number, number, number] {
    for (let distance = 0; distance < this.distance * SIZE; distance++) {
      const x = Math.floor(this.body.x) + distance
      const z = Math.floor(this.body.z)
      const top = this.surface(x, z)
      for (let y = 4; y < top - 16; y++) {
        if ([0, 1, 2].every((up) => this.world.get(x, y + up, z) === AIR)) return [x + 0.5, y + 1.6, z + 0.5]
      }
    }
    throw new Error('the benchmark found no cave')
  }

  private surface(x: number, z: number): number {
    let y = this.world.height - 1
    while (y > 1 && this.world.get(x, y, z) === AIR) y--
    return y
  }

  /** Flies straight on over the land, which is loaded on the way, and counts the tasks that block the page. */
  private async fly(): Promise<void> {
    const { body, session } = this
    const work: number[] = []
    const from = body.x
    body.flying = true
    this.draw(body.x, body.y + 1.6, body.z, Math.PI / 2, -0.2) // a player has seen some frames before
    const start = await frame()
    const tasks: number[] = []
    const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)))
    observer.observe({ type: 'longtask' })
    for (let before = start, now = start; now - start < FLIGHT_MS; before = now) {
      now = await frame()
      const begin = performance.now()
      const seconds = Math.min(0.5, (now - before) / 1000)
      body.y = Math.min(this.surface(Math.floor(body.x), Math.floor(body.z)) + 40, body.y + 8 * seconds)
      body.x += FLIGHT_SPEED * seconds
      session.sendPose(now)
      this.draw(body.x, body.y + 1.6, body.z, Math.PI / 2, -0.2)
      work.push(performance.now() - begin)
    }
    observer.disconnect()
    const far = Math.round(body.x - from)
    this.add(
      `long tasks in ${FLIGHT_MS / 1000} s of flight over ${far} blocks, and the longest`,
      `${tasks.length}, ${ms(Math.max(0, ...tasks))}`,
    )
    this.add(
      'JavaScript a frame of the flight, p50, p99, the most',
      [0.5, 0.99, 1].map((share) => ms(quantile(work, share))).join(', '),
    )
  }

  /** Flies a circle around the spawn. */
  private async circle(): Promise<void> {
    const { body } = this
    let most = this.draw(body.x, body.y + 1.6, body.z, 0, 0)
    for (let turn = 1; turn < 8; turn++) {
      const stats = this.draw(body.x, body.y + 1.6, body.z, (turn * Math.PI) / 4, 0)
      if (stats.triangles > most.triangles) most = stats
    }
    this.add('drawn at spawn, the most of 8 directions', drawn(most))
    const times: number[] = []
    const work: number[] = []
    let before = 0
    most = { ...most, triangles: 0 }
    for (let i = 0; i <= FLIGHT_FRAMES; i++) {
      const now = await frame()
      if (i > 0) times.push(now - before)
      before = now
      const angle = (i / FLIGHT_FRAMES) * 2 * Math.PI
      const start = performance.now()
      const stats = this.draw(body.x + 60 * Math.cos(angle), body.y + 14, body.z + 60 * Math.sin(angle), angle, -0.15)
      work.push(performance.now() - start)
      if (stats.triangles > most.triangles) most = stats
    }
    const shares = (list: number[]) => [0.5, 0.95, 0.99].map((share) => ms(quantile(list, share))).join(', ')
    this.add('frame time in flight, p50, p95, p99', shares(times))
    this.add('of it JavaScript', shares(work))
    this.add('most drawn in flight', drawn(most))
  }

  /** Digs and builds on the surface, one edit at a time. */
  private async edit(): Promise<void> {
    const { stats } = this.meshes
    const start = { ...stats }
    for (let i = 0; i < EDITS; i++) {
      this.editNear(i)
      this.meshes.pump(this.body.x, this.body.z)
      await this.until(() => this.meshes.backlog === 0, 30_000)
    }
    const edits = stats.edits - start.edits
    this.add(`sections meshed again per edit, of ${edits}`, ((stats.remeshed - start.remeshed) / edits).toFixed(2))
    this.add('time of a worker per edit', ms((stats.editing - start.editing) / edits))
  }

  private editNear(i: number): void {
    const x = Math.floor(this.body.x) + Math.floor(64 * (hash(i, 0, 1) - 0.5))
    const z = Math.floor(this.body.z) + Math.floor(64 * (hash(i, 1, 1) - 0.5))
    const y = this.surface(x, z)
    if (i % 2 === 0) this.world.set(x, y, z, AIR)
    else this.world.set(x, y + 1, z, STONE)
  }

  /** As many builders as a crowd, each with an edit every frame: the backlog after the last one drains. */
  private async build(): Promise<void> {
    for (let i = 0; i < BUILDER_FRAMES; i++) {
      for (let builder = 0; builder < BUILDERS; builder++) this.editNear(EDITS + i * BUILDERS + builder)
      this.meshes.pump(this.body.x, this.body.z)
      await frame()
    }
    const start = performance.now()
    await this.until(() => this.meshes.backlog === 0, 60_000)
    this.add(
      `backlog 0 after ${BUILDERS * BUILDER_FRAMES} edits by ${BUILDERS} builders`,
      ms(performance.now() - start),
    )
  }

  /** Compares frames with and without a crowd in view. */
  private async crowd(): Promise<void> {
    const { x, y, z } = this.body
    const without = await this.crowdFrames()
    for (let i = 0; i < BUILDERS; i++) {
      const at = { x: x + (i % 15) - 7, y: y + 1, z: z + 6 + Math.floor(i / 15) * 3, yaw: i, pitch: 0 }
      this.avatars.enter({ player: `player ${i}`, name: `Player${i}`, ...at }, [0, 0], performance.now())
    }
    const crowd = await this.crowdFrames()
    this.add(`draw calls of ${BUILDERS} avatars`, String(crowd.calls - without.calls))
    this.add('JavaScript a frame of the avatars, p50', ms(crowd.avatars - without.avatars))
  }

  private async crowdFrames(): Promise<{ calls: number; avatars: number }> {
    const times: number[] = []
    let calls = 0
    for (let i = 0; i < 20; i++) {
      await frame()
      const camera = { x: this.body.x, y: this.body.y + 3, z: this.body.z, yaw: 0, pitch: -0.1 }
      const start = performance.now()
      this.view.setCamera(camera)
      this.avatars.update(start, 0.016, camera, this.view.originX, this.view.originZ)
      times.push(performance.now() - start)
      calls = this.draw(camera.x, camera.y, camera.z, 0, camera.pitch).calls
    }
    return { calls, avatars: quantile(times, 0.5) }
  }

  private draw(x: number, y: number, z: number, yaw: number, pitch: number): View['stats'] {
    const camera = { x, y, z, yaw, pitch }
    this.view.setCamera(camera)
    this.meshes.pump(x, z)
    this.view.draw(camera, NOON, false, 0, 0.016, 0)
    return this.view.stats
  }

  private async until(condition: () => boolean, patience: number): Promise<void> {
    const end = performance.now() + patience
    while (!condition()) {
      if (this.refused) throw new Error(this.refused)
      if (performance.now() > end) throw new Error('the benchmark waited too long')
      this.meshes.pump(this.body.x, this.body.z)
      await new Promise((go) => setTimeout(go))
    }
  }
}

function frame(): Promise<number> {
  return new Promise(requestAnimationFrame)
}

function timed<T>(work: () => T): { value: T; time: number } {
  const start = performance.now()
  const value = work()
  return { value, time: performance.now() - start }
}

function quantile(list: number[], share: number): number {
  const sorted = [...list].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}

function ms(time: number): string {
  return `${time.toFixed(time < 10 ? 2 : 0)} ms`
}

function kilobytes(bytes: number): string {
  return `${Math.round(bytes / 1000)} kB`
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}

function drawn({ calls, triangles }: View['stats']): string {
  return `${calls} calls, ${Math.round(triangles / 1000)} k triangles`
}
