// Sticks: of the touch controls, and of gamepads.

/** Movement by a stick: forward and right in [−1, 1]. */
export interface Stick {
  forward: number
  right: number
  fast: boolean
}

export const CENTRED: Stick = { forward: 0, right: 0, fast: false }

/**
 * Returns a direction in the unit disc, zero inside the dead zone, and growing from zero at its rim. x and y are 1 at the rim of
 * the stick.
 */
export function withDeadZone(x: number, y: number, dead: number): [x: number, y: number] {
  const length = Math.hypot(x, y)
  if (length <= dead) return [0, 0]
  const scale = Math.min(1, (length - dead) / (1 - dead)) / length
  return [x * scale, y * scale]
}
