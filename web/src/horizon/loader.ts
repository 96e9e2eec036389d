// Fetches surface tiles from the gateway, the nearest first, and again those that have changed.

import { nameOf, type TileKey } from './quadtree'

const ASK_MS = 3500 // between two requests for hashes; a request that is not complete is repeated after
const MORE_MS = 300
const FAILED_MS = 10_000
const AT_ONCE = 4
const MAX_NAMED = 80 // in a request

const TIMEOUT_MS = 10_000

export type Fetch = (url: string) => Promise<Response>

/** Fetches from a gateway, whose machine may be gone without a word. */
export const fetchInTime: Fetch = (url) => fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })

export class TileLoader {
  private wanted: TileKey[] = []
  private hashes = new Map<string, string>() // of the tiles wanted, as the gateway has them
  private held = new Map<string, string>() // of the tiles that were loaded
  private loading = new Set<string>()
  private asking = false
  private askAt = 0

  constructor(
    private readonly loaded: (key: TileKey, bytes: Uint8Array) => void,
    private readonly load = fetchInTime,
  ) {}

  /** Sets the tiles that are wanted, the nearest first. */
  want(keys: TileKey[]): void {
    const before = new Set(this.wanted.map(nameOf))
    if (keys.some((key) => !before.has(nameOf(key)))) this.askAt = 0
    this.wanted = keys.slice(0, MAX_NAMED)
    const names = new Set(this.wanted.map(nameOf))
    for (const name of this.hashes.keys()) if (!names.has(name)) this.hashes.delete(name)
  }

  /** Forgets a tile, which is loaded again when it is wanted. */
  forget(name: string): void {
    this.held.delete(name)
  }

  /** Sends what is due to the gateway whose address is given. */
  update(base: string, now: number): void {
    if (!this.asking && now >= this.askAt && this.wanted.length > 0) void this.ask(base, now)
    for (const key of this.wanted) {
      if (this.loading.size >= AT_ONCE) break
      const name = nameOf(key)
      const hash = this.hashes.get(name)
      if (hash && hash !== this.held.get(name) && !this.loading.has(name)) void this.fetch(base, key, hash)
    }
  }

  private async ask(base: string, now: number): Promise<void> {
    this.asking = true
    this.askAt = now + ASK_MS
    try {
      const response = await this.load(`${base}?tiles=${this.wanted.map(nameOf).join(',')}`)
      if (!response.ok) throw new Error(`hashes of surface tiles: ${response.status}`)
      const { tiles, more } = (await response.json()) as { tiles: Record<string, string>; more?: boolean }
      for (const [name, hash] of Object.entries(tiles)) this.hashes.set(name, hash)
      if (more) this.askAt = now + MORE_MS
    } catch {
      this.askAt = now + FAILED_MS // the gateway is away, or has no map
    }
    this.asking = false
  }

  private async fetch(base: string, key: TileKey, hash: string): Promise<void> {
    const name = nameOf(key)
    this.loading.add(name)
    try {
      const response = await this.load(`${base}/${name}/${hash}`)
      if (!response.ok) throw new Error(`surface tile: ${response.status}`)
      const bytes = new Uint8Array(await response.arrayBuffer())
      this.held.set(name, hash)
      this.loaded(key, bytes)
    } catch {
      this.hashes.delete(name) // until the hashes are asked for again
    }
    this.loading.delete(name)
  }
}
