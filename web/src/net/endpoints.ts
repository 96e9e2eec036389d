// Where to connect: the address that the page came from, and the homes that gateways have named. Gateways are
// believed only as far as an address can be opened: a page that came over https opens no ws://.

const MAX_HOMES = 8
const MAX_URL = 512

/** The WebSocket URLs of a reconnect message that this page may open, in their order. */
export function usableTargets(homes: unknown, secure: boolean): string[] {
  if (!Array.isArray(homes)) return []
  const usable: string[] = []
  for (const home of homes.slice(0, MAX_HOMES) as unknown[]) {
    const text = (home as { url?: unknown } | null)?.url
    if (typeof text !== 'string' || text.length > MAX_URL || !URL.canParse(text)) continue
    const url = new URL(text)
    if (url.protocol !== 'wss:' && (secure || url.protocol !== 'ws:')) continue
    if (url.username || url.password || url.hash) continue
    usable.push(url.href)
  }
  return usable
}

export class Endpoints {
  private ring: string[] // tried one after the other, round and round
  private at = 0

  /** origin is the WebSocket of the page's own node; it is never forgotten. */
  constructor(readonly origin: string) {
    this.ring = [origin]
  }

  /** The address in use, or the one to try now. */
  get url(): string {
    return this.ring[this.at]
  }

  /** How many addresses there are. */
  get length(): number {
    return this.ring.length
  }

  /** A gateway sends the player on. False if it names no home that can be opened: then the address stays. */
  handOff(homes: unknown): boolean {
    const usable = usableTargets(homes, this.origin.startsWith('wss:')).filter((home) => home !== this.url)
    if (usable.length === 0) return false
    this.ring = unique([...usable, this.origin])
    this.at = 0
    return true
  }

  /** The address did not do: on to the next one. */
  failed(): void {
    this.at = (this.at + 1) % this.ring.length
  }

  /** The address is the player's home now. If it is lost, the page's own comes next, and then the others. */
  welcomed(): void {
    this.ring = unique([this.url, this.origin, ...this.ring])
    this.at = 0
  }
}

function unique(list: string[]): string[] {
  return [...new Set(list)]
}
