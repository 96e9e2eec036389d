// Deterministic randomness: the same on every client.

/** Returns a deterministic number in [0, 1) for its arguments. */
export function hash(x: number, y: number, seed: number): number {
  return scramble(scramble(scramble(seed) + Math.imul(x, 374761393)) + Math.imul(y, 668265263)) / 4294967296
}

/** The finalizer of MurmurHash3: every bit of h affects every bit of the result, a uint32. */
function scramble(h: number): number {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** Returns the element at a fraction, in [0, 1), of a list. */
export function pick<T>(list: readonly [T, ...T[]], fraction: number): T {
  return list[Math.floor(fraction * list.length)] ?? list[0]
}
