/** The feet in world blocks, angles in radians. Yaw 0 is +Z and grows clockwise seen from above; pitch is positive upwards. */
export interface Pose {
  x: number
  y: number
  z: number
  yaw: number
  pitch: number
}
