// Places that a player has named, kept on this device, apart for each world.

export interface Bookmark {
  name: string
  x: number
  y: number
  z: number
}

export const MAX_BOOKMARKS = 100 // of a world
export const MAX_NAME = 40 // letters

const KEY = 'voxeld.bookmarks.' // followed by the id of the world

export class Bookmarks {
  private list: readonly Bookmark[]

  constructor(
    private readonly storage: Pick<Storage, 'getItem' | 'setItem'>,
    private readonly world: string,
  ) {
    this.list = parse(storage.getItem(KEY + world))
  }

  get all(): readonly Bookmark[] {
    return this.list
  }

  /** Adds a place as the first one. Returns false if there are too many. */
  add(bookmark: Bookmark): boolean {
    if (this.list.length >= MAX_BOOKMARKS) return false
    this.set([{ ...bookmark, name: bookmark.name.trim().slice(0, MAX_NAME) }, ...this.list])
    return true
  }

  remove(bookmark: Bookmark): void {
    this.set(this.list.filter((other) => other !== bookmark))
  }

  private set(list: readonly Bookmark[]): void {
    this.list = list
    this.storage.setItem(KEY + this.world, JSON.stringify(list))
  }
}

function parse(stored: string | null): Bookmark[] {
  try {
    const list: unknown = JSON.parse(stored ?? '[]')
    return Array.isArray(list) ? list.filter(isBookmark).slice(0, MAX_BOOKMARKS) : []
  } catch {
    return []
  }
}

function isBookmark(it: unknown): it is Bookmark {
  const { name, x, y, z } = (it ?? {}) as Partial<Record<keyof Bookmark, unknown>>
  return typeof name === 'string' && name.length <= MAX_NAME && [x, y, z].every((v) => Number.isSafeInteger(v))
}
