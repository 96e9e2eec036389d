// The storage of this browser. Without one, as when cookies are blocked, and when it is full, what is written lasts as long as the page.

const kept = new Map<string, string>() // what the browser did not store

export const storage = {
  /** Reports whether the browser has stored all that was written. */
  get lasts(): boolean {
    return kept.size === 0
  },

  /** Reports whether the browser has stored what was written under a key. */
  keeps(key: string): boolean {
    return !kept.has(key)
  },

  getItem(key: string): string | null {
    try {
      return kept.get(key) ?? localStorage.getItem(key)
    } catch {
      return null
    }
  },

  setItem(key: string, value: string): void {
    try {
      localStorage.setItem(key, value)
      kept.delete(key)
    } catch {
      kept.set(key, value)
    }
  },
}
