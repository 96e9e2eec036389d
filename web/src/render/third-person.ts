// Third person: where the camera is, and where the player's figure holds a block.

import { product, rotationX, rotationY, rotationZ, translation, type Matrix } from '../gl/matrix'
import type { Blocks } from '../player/body'
import { castRay, direction } from '../player/ray'
import { boxesOf, isSolid } from '../world/blocks'
import type { Camera } from './camera'
import { HIPS, LEAN, LOWER, PIXEL, type Figure } from './figure'

const DISTANCE = 4 // blocks from the eyes
/** In blocks: how near the camera comes to a block. It is more than the near plane reaches at the widest field of view. */
const MARGIN = 0.15
const SIDES = [-MARGIN, MARGIN]

/** Returns the camera behind somebody's eyes, or before them and turned to them, on this side of all solid blocks. */
export function cameraAround(blocks: Blocks, eyes: Camera, front: boolean): Camera {
  const yaw = front ? eyes.yaw + Math.PI : eyes.yaw
  const pitch = front ? -eyes.pitch : eyes.pitch
  const [x, y, z] = direction(yaw, pitch)
  let distance = DISTANCE
  for (const dx of SIDES) {
    for (const dy of SIDES) {
      for (const dz of SIDES) {
        const corner = [eyes.x + dx, eyes.y + dy, eyes.z + dz] as const
        const hit = castRay(blocks, corner, [-x, -y, -z], distance, isSolid, boxesOf)
        if (hit) distance = hit.distance
      }
    }
  }
  return { x: eyes.x - x * distance, y: eyes.y - y * distance, z: eyes.z - z * distance, yaw, pitch }
}

/** Returns the place of the right hand of a figure, as figure-mesh.ts draws it; like the figure's, it is relative to the render origin. */
export function handOf({ place: [x, y, z, yaw], limbs, state }: Figure): Matrix {
  const [, , arm, outwards] = limbs
  const crouch = state[3]
  return product(
    translation(x, y, z),
    rotationY(-yaw),
    translation(0, HIPS * (1 - LOWER * crouch), 0),
    rotationX(LEAN * crouch),
    translation(-6 * PIXEL, 23 * PIXEL - HIPS, 0),
    rotationX(arm),
    rotationZ(-outwards),
    translation(0, -10.5 * PIXEL, 3.5 * PIXEL),
  )
}
