// How loud a sound is, and on which side it is heard.

/** The position of the ears, and the yaw of the head as in the protocol's Pose. */
export interface Ear {
  readonly x: number
  readonly y: number
  readonly z: number
  readonly yaw: number
}

export interface Heard {
  /** 0 to 1; 0 if it is out of reach. */
  gain: number
  /** −1 is left, 1 is right. */
  pan: number
}

/** In blocks: what is farther away is not heard. */
export const REACH = 40
/** In blocks: up to here a sound keeps its loudness, and at twice the distance it has half of it. */
const NEAR = 4
const WIDEST = 0.85 // one ear still hears what is on the other side

export function hear({ x, y, z, yaw }: Ear, at: { x: number; y: number; z: number }): Heard {
  const dx = at.x - x
  const dz = at.z - z
  const distance = Math.hypot(dx, at.y - y, dz)
  if (distance >= REACH) return { gain: 0, pan: 0 }
  const gain = (NEAR / Math.max(NEAR, distance)) * Math.min(1, (2 * (REACH - distance)) / REACH)
  const right = -dx * Math.cos(yaw) - dz * Math.sin(yaw)
  return { gain, pan: (WIDEST * right) / Math.max(1, distance) }
}
