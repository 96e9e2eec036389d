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

/** Returns the link to where somebody stands. */
export function placeLink(page: string, { x, y, z }: { x: number; y: number; z: number }): string {
  const place = [Math.floor(x), Math.max(0, Math.floor(y + 0.001)), Math.floor(z)]
  return `${page.replace(/#.*/, '')}#${place.join()}`
}
