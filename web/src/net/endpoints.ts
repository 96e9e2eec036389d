// The addresses to connect to: the page's origin, and the handoff targets that gateways have named. Only targets that the
// page may open are used: a page loaded over https cannot open ws://.

const MAX_TARGETS = 8
const MAX_URL = 512

/** Returns the WebSocket URLs of a reconnect message that this page may open, in order. */
export function usableTargets(targets: unknown, secure: boolean): string[] {
  if (!Array.isArray(targets)) return []
  const usable: string[] = []
  for (const target of targets.slice(0, MAX_TARGETS) as unknown[]) {
    const text = (target as { url?: unknown } | null)?.url
    if (typeof text !== 'string' || text.length > MAX_URL || !URL.canParse(text)) continue
    const url = new URL(text)
    if (url.protocol !== 'wss:' && (secure || url.protocol !== 'ws:')) continue
    if (url.username || url.password || url.hash) continue
    usable.push(url.href)
  }
  return usable
}

/** Returns the WebSocket URL of the node that a page comes from. */
export function gatewayOf(page: Location): string {
  const url = new URL('ws', page.href)
  url.protocol = page.protocol === 'https:' ? 'wss:' : 'ws:'
  url.search = url.hash = ''
  return url.href
}

/** Returns the address of the surface tiles of the gateway with a WebSocket. */
export function surfaceOf(socket: string): string {
  const url = new URL('surface', socket)
  url.protocol = url.protocol === 'wss:' ? 'https:' : 'http:'
  return url.href
}

export class Endpoints {
  private urls: string[] // tried in turn, round-robin
  private current = 0

  /** origin is the WebSocket URL of the page's own node; it always stays in the list. */
  constructor(readonly origin: string) {
    this.urls = [origin]
  }

  /** The address in use, or the next one to try. */
  get url(): string {
    return this.urls[this.current] ?? this.origin
  }

  /** The number of addresses. */
  get length(): number {
    return this.urls.length
  }

  /** Switches to the targets of a handoff. Returns false, and changes nothing, if this page can open none of them. */
  handOff(targets: unknown): boolean {
    const usable = usableTargets(targets, this.origin.startsWith('wss:')).filter((url) => url !== this.url)
    if (usable.length === 0) return false
    this.urls = unique([...usable, this.origin])
    this.current = 0
    return true
  }

  /** Selects the next address after a failure. */
  advance(): void {
    this.current = (this.current + 1) % this.urls.length
  }

  /** Moves the current address, which has welcomed the player, to the front; the origin comes next, then the others. */
  preferCurrent(): void {
    this.urls = unique([this.url, this.origin, ...this.urls])
    this.current = 0
  }
}

function unique(list: string[]): string[] {
  return [...new Set(list)]
}
