/** The position of the camera in world blocks, and its angles as in the protocol's Pose. */
export interface Camera {
  x: number
  y: number
  z: number
  yaw: number
  pitch: number
}
