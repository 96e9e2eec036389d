// Vectors and colours of three numbers.

export type Vector = [x: number, y: number, z: number]

/** Returns the vector between two others: that is from if share is 0, and to if it is 1. */
export function mixed(from: Readonly<Vector>, to: Readonly<Vector>, share: number): Vector {
  return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share, from[2] + (to[2] - from[2]) * share]
}

export function scaled([x, y, z]: Readonly<Vector>, factor: number): Vector {
  return [x * factor, y * factor, z * factor]
}

/** Returns the vector of length 1 in the same direction. */
export function normalized(vector: Readonly<Vector>): Vector {
  return scaled(vector, 1 / (Math.hypot(...vector) || 1))
}
