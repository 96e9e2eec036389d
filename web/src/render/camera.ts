/** Where one looks from, in world blocks, and whereto (angles as in the protocol's Pose). */
export interface Camera {
  x: number
  y: number
  z: number
  yaw: number
  pitch: number
}
