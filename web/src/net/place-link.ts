// Links to a place in the world: the page's address with #x,y,z, the block in which the visitor stands.

const MAX_BLOCK = 2 ** 31 - 1

export type Place = [x: number, y: number, z: number]

/** Returns the place of an address's hash, or null if it names none. */
export function placeIn(hash: string): Place | null {
  const match = /^#(-?\d{1,10}),(\d{1,4}),(-?\d{1,10})$/.exec(hash)
  if (!match) return null
  const [x, y, z] = match.slice(1).map(Number) as Place
  return Math.abs(x) <= MAX_BLOCK && Math.abs(z) <= MAX_BLOCK ? [x, y, z] : null
}

/** Where a link can be opened: everywhere, in the network of the node, or only on the machine itself. */
export type Reach = 'everywhere' | 'network' | 'machine'

/** The address under which others open this page. */
export interface SharedPage {
  page: string
  reach: Reach
}

/** Returns how to share a page. One that was opened at localhost is shared by the address that its node advertises. */
export function sharedPage(page: string, advertised = ''): SharedPage {
  const at = reachOf(page)
  if (at !== 'machine' || !URL.canParse(advertised)) return { page, reach: at }
  const reach = reachOf(advertised)
  return reach === 'machine' ? { page, reach } : { page: new URL(advertised).href, reach }
}

function reachOf(page: string): Reach {
  const host = new URL(page).hostname
  if (host === 'localhost' || host.endsWith('.localhost') || host.startsWith('127.') || host === '[::1]')
    return 'machine'
  const local = /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|\[f[cde])|^[^.[]+$|\.local$/
  return local.test(host) ? 'network' : 'everywhere'
}

/** Returns the link to where somebody stands. */
export function placeLink(page: string, { x, y, z }: { x: number; y: number; z: number }): string {
  const place = [Math.floor(x), Math.max(0, Math.floor(y + 0.001)), Math.floor(z)]
  return `${page.replace(/#.*/, '')}#${place.join()}`
}
