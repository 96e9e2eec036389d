// Draws a frame: the world from the player's position, or the backdrop of the title screen.

import type { MeshScheduler } from '../mesh/scheduler'
import type { BlockInteraction } from '../player/block-interaction'
import { EYE, type Body } from '../player/body'
import { anglesOf } from '../player/ray'
import type { Avatars } from '../render/avatars'
import type { Camera } from '../render/camera'
import type { View } from '../render/view'
import { AIR, WATER, boundsOf } from '../world/blocks'
import type { Clock } from '../world/clock'
import type { World } from '../world/world'
import type { Frame, System } from './frame-loop'
import type { LazySystem } from './lazy'
import type { Store } from './store'
import type { ThirdPerson } from './third-person'

const BACKDROP_MINUTES = 16.6 * 60
const STEP_RATE = 14 // 1/s, of the camera's rise after a step
const WATER_SURFACE = 0.875 // above the lower side of a block of water

export class Scene implements System {
  private readonly stillness = window.matchMedia('(prefers-reduced-motion: reduce)')
  /** Of the last frame. */
  camera: Camera = { x: 0, y: 0, z: 0, yaw: 0, pitch: 0 }
  submerged = false

  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly interaction: BlockInteraction,
    private readonly clock: Clock,
    private readonly avatars: Avatars,
    private readonly meshes: MeshScheduler,
    private readonly view: View,
    private readonly thirdPerson: Pick<LazySystem<ThirdPerson>, 'part'>,
  ) {}

  update({ now, dt }: Frame): void {
    const { store, view, body } = this
    body.stepped *= Math.exp(-STEP_RATE * dt)
    const { part } = this.thirdPerson
    const eyes = store.inWorld ? playerCamera(body) : titleCamera(this.stillness.matches ? 0 : now / 1000)
    const camera = part ? part.cameraFrom(eyes) : eyes
    this.camera = camera
    this.submerged = isUnderWater(this.world, camera)
    view.setCamera(camera)
    const aim = store.screen === 'play' && this.interaction.sight ? this.interaction.aim : null
    view.outlineBlock(aim, boundsOf(aim ? this.world.get(aim.x, aim.y, aim.z) : AIR))
    this.avatars.update(now, dt, camera, view.originX, view.originZ)
    part?.holdBlock()
    this.meshes.pump(camera.x, camera.z)
    const minutes = store.inWorld ? this.clock.minutesAt(now) : BACKDROP_MINUTES
    view.draw(camera, minutes, this.submerged, now / 1000, dt, body.walkingSpeed)
  }
}

function playerCamera({ x, y, z, yaw, pitch, stepped }: Body): Camera {
  return { x, y: y + EYE - stepped, z, yaw, pitch }
}

/** Returns the camera of the title screen, which orbits the island. */
function titleCamera(seconds: number): Camera {
  const angle = seconds * 0.04 + 0.6
  const x = Math.cos(angle) * 88
  const z = Math.sin(angle) * 88
  const y = 52 + 4 * Math.sin(seconds * 0.11)
  return { x, y, z, ...anglesOf(-x, 24 - y, -z) }
}

function isUnderWater(world: World, camera: Camera): boolean {
  const x = Math.floor(camera.x)
  const y = Math.floor(camera.y)
  const z = Math.floor(camera.z)
  if (world.get(x, y, z) !== WATER) return false
  return camera.y - y < (world.get(x, y + 1, z) === WATER ? 1 : WATER_SURFACE)
}
