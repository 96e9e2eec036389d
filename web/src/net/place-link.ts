// Links to a place in the world: the page's address with #x,y,z, the block in which the visitor stands; and the address
// under which others open the page.

const MAX_BLOCK = 2 ** 31 - 1

export type Place = [x: number, y: number, z: number]

/** Returns the place of an address's hash, or null if it names none. */
export function placeIn(hash: string): Place | null {
  const match = /^#(-?\d{1,10}),(\d{1,4}),(-?\d{1,10})$/.exec(hash)
  if (!match) return null
  const [x, y, z] = match.slice(1).map(Number) as Place
  return Math.abs(x) <= MAX_BLOCK && Math.abs(z) <= MAX_BLOCK ? [x, y, z] : null
}

/** Where a link can be opened, the narrowest first: on the machine itself, in the network of the node, everywhere. */
const REACHES = ['machine', 'network', 'everywhere'] as const

/** The address under which others open this page. */
export interface SharedPage {
  page: string
  reach: (typeof REACHES)[number]
}

/** Returns how to share a page: by the address that its node advertises, if more people can open that one. */
export function sharedPage(page: string, advertised: string): SharedPage {
  const own = { page, reach: reachOf(new URL(page)) }
  if (!/^https?:/i.test(advertised) || !URL.canParse(advertised)) return own
  const other = { page: new URL(advertised).href, reach: reachOf(new URL(advertised)) }
  return REACHES.indexOf(other.reach) > REACHES.indexOf(own.reach) ? other : own
}

const MACHINE = /^(localhost|.*\.localhost|127\..*|0\.0\.0\.0|\[::1?\])$/
const ADDRESSES =
  /^(10|192\.168|169\.254|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\.[\d.]+$|^\[f[cde]/
const NAMES = /^[^.[]+$|\.(local|lan|home|internal|home\.arpa|fritz\.box)$/

function reachOf({ hostname }: URL): SharedPage['reach'] {
  if (MACHINE.test(hostname)) return 'machine'
  return ADDRESSES.test(hostname) || NAMES.test(hostname) ? 'network' : 'everywhere'
}

/** Returns the link to where somebody stands. */
export function placeLink(page: string, { x, y, z }: { x: number; y: number; z: number }): string {
  const place = [Math.floor(x), Math.max(0, Math.floor(y + 0.001)), Math.floor(z)]
  return `${page.replace(/#.*/, '')}#${place.join()}`
}
