// Which nodes lead the regions of the land that is looked at, by colour. Asked again while they are shown.

import { fetchInTime } from '../horizon/loader'
import { across, down, type Frame } from './frame'

/** Blocks along a side of a sector. */
export const SECTOR = 2048

const ASK_MS = 3000
const FAILED_MS = 8000
const MAX_NAMED = 36 // sectors in a request
const MAX_NODES = 64 // with a colour of their own
const GOLDEN_ANGLE = 137.508

/** Land, in blocks, and the peer id of the node that leads its region. */
export interface Host {
  x: number
  z: number
  width: number
  depth: number
  node?: string
  /** No node that leads it answers. */
  lost?: boolean
}

export class Hosts {
  private readonly sectors = new Map<string, Host[]>()
  private readonly colours = new Map<string, string>()
  private asking = false
  private askAt = 0

  constructor(
    private readonly changed: () => void,
    private readonly load = fetchInTime,
  ) {}

  /** Asks the gateway with that address of surface tiles, if it is time. Called as long as a frame is shown. */
  update(base: string, frame: Frame, now: number): void {
    if (!this.asking && now >= this.askAt) void this.ask(base, sectorsIn(frame), now)
  }

  /** Returns the nodes that lead regions in a frame and the number of these; that of the land without a leader has no node. */
  legend(frame: Frame): { node: string; regions: number }[] {
    const counts = new Map<string, number>()
    for (const host of this.within(frame)) {
      const node = nodeOf(host)
      counts.set(node, (counts.get(node) ?? 0) + 1)
    }
    return [...counts].map(([node, regions]) => ({ node, regions })).sort((a, b) => b.regions - a.regions)
  }

  /** Returns the colour of a node; without one, that of land without a leader. */
  colourOf(node: string): string {
    if (!node) return 'hsl(0 0% 12%)'
    const known = this.colours.get(node)
    if (known) return known
    const colour = `hsl(${((this.colours.size % MAX_NODES) * GOLDEN_ANGLE + 200) % 360} 75% 58%)`
    this.colours.set(node, colour)
    return colour
  }

  draw(context: CanvasRenderingContext2D, frame: Frame): void {
    for (const host of this.within(frame)) {
      const node = nodeOf(host)
      const [left, top] = [across(frame, host.x), down(frame, host.z)]
      const [width, height] = [host.width * frame.scale, host.depth * frame.scale]
      context.fillStyle = context.strokeStyle = this.colourOf(node)
      context.globalAlpha = node === '' ? 0.7 : 0.42
      context.fillRect(left, top, width, height)
      context.globalAlpha = 0.9
      context.lineWidth = 1.5
      context.strokeRect(left + 1, top + 1, width - 2, height - 2)
    }
    context.globalAlpha = 1
  }

  private within(frame: Frame): Host[] {
    const east = frame.x + frame.width / frame.scale
    const south = frame.z + frame.height / frame.scale
    return sectorsIn(frame)
      .flatMap((name) => this.sectors.get(name) ?? [])
      .filter(({ x, z, width, depth }) => x < east && z < south && x + width > frame.x && z + depth > frame.z)
  }

  private async ask(base: string, names: string[], now: number): Promise<void> {
    this.asking = true
    this.askAt = now + ASK_MS
    try {
      const response = await this.load(`${base}/hosts?sectors=${names.join()}`)
      if (!response.ok) throw new Error(`hosts of regions: ${response.status}`)
      const { sectors } = (await response.json()) as { sectors: Record<string, Host[]> }
      for (const name of this.sectors.keys()) if (!names.includes(name)) this.sectors.delete(name)
      for (const [name, hosts] of Object.entries(sectors)) this.sectors.set(name, hosts)
      this.changed()
    } catch {
      this.askAt = now + FAILED_MS // the gateway is away
    }
    this.asking = false
  }
}

const nodeOf = ({ node, lost }: Host): string => (lost ? '' : (node ?? ''))

/** Returns the names of the sectors in a frame. */
export function sectorsIn(frame: Frame): string[] {
  const names: string[] = []
  for (let z = Math.floor(frame.z / SECTOR); z * SECTOR < frame.z + frame.height / frame.scale; z++) {
    for (let x = Math.floor(frame.x / SECTOR); x * SECTOR < frame.x + frame.width / frame.scale; x++)
      names.push(`${x}.${z}`)
  }
  return names.slice(0, MAX_NAMED)
}
