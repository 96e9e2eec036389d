// The other players in view: their names, interpolated positions, and figures.

import type { Mesh } from '../gl/mesh'
import type { Avatar, AvatarMove, ChunkAddress } from '../net/protocol'
import type { TargetPlayer } from '../player/block-interaction'
import { castBody, type Vector } from '../player/ray'
import { InterpolationBuffer } from '../motion/interpolation-buffer'
import type { Pose } from '../motion/pose'
import { AIR, kindOf } from '../world/blocks'
import { Lamps } from '../world/lamps'
import type { World } from '../world/world'
import type { Camera } from './camera'
import { Figure, setSkin, skins } from './figure'
import { FigureMesh } from './figure-mesh'
import type { HeldBlocks } from './held-blocks'
import { NameTags, type NameTag } from './name-tags'

const TAG_HEIGHT = 2
const ROOF_REACH = 24 // blocks above an avatar that are searched for a roof
const INSIDE = 0.6 // blocks from a figure
const LAMP_REACH = 15
const LIGHT_MS = 500 // between two searches

interface RemoteAvatar {
  name: string
  held: number // a block
  guest: boolean
  chunk: ChunkAddress // the one that they entered last
  buffer: InterpolationBuffer
  figure: Figure
  tag: NameTag
  shown: { x: number; y: number; z: number }
  speed: number // blocks/s, smoothed
  litAt: number // ms, of the last search for light
}

/** The player's own figure, in third person. */
export interface OwnFigure {
  player: string
  figure: Figure
  body: { x: number; y: number; z: number; yaw: number; pitch: number; walkingSpeed: number; sneaks: boolean }
  litAt: number
}

/** Another player in view, and where they are shown. */
export interface OtherPlayer {
  player: string
  name: string
  guest: boolean
  held: number
  sneaks: boolean
  x: number
  y: number
  z: number
}

export class Avatars {
  /** Null unless it is shown. */
  self: OwnFigure | null = null
  readonly meshes: readonly Mesh[]
  readonly names: Mesh
  visible = true
  /** Shows the blocks that others hold, once it is loaded. */
  held: Pick<HeldBlocks, 'show'> | null = null
  private others = new Map<string, RemoteAvatar>()
  private readonly figures = new FigureMesh()
  private readonly tags = new NameTags()
  private readonly lamps: Lamps

  constructor(private readonly world: World) {
    this.lamps = new Lamps(world)
    this.meshes = [this.figures.mesh]
    this.names = this.tags.mesh
  }

  enter(avatar: Avatar, chunk: ChunkAddress, now: number): void {
    const known = this.others.get(avatar.player)
    const skin = avatar.skin ?? 0
    const { held, sneaks } = avatar.stance ?? { held: AIR, sneaks: false }
    if (known && known.name === avatar.name && skin === (skins.get(avatar.player) ?? 0)) {
      known.chunk = chunk
      known.buffer.add(avatar, now)
      known.held = held
      known.tag.faint = known.figure.sneaks = sneaks
      return
    }
    this.others.delete(avatar.player)
    setSkin(avatar.player, skin)
    const figure = new Figure(avatar.player)
    figure.sneaks = sneaks
    const guest = avatar.guest ?? false
    this.others.set(avatar.player, {
      name: avatar.name,
      held,
      guest,
      chunk,
      buffer: new InterpolationBuffer(avatar, now),
      figure,
      tag: {
        text: avatar.name,
        guest,
        colour: figure.appearance.css,
        x: 0,
        y: 0,
        z: 0,
        distance: Infinity,
        faint: sneaks,
        shown: 1,
      },
      shown: { x: avatar.x, y: avatar.y, z: avatar.z },
      speed: 0,
      litAt: 0,
    })
  }

  move(move: AvatarMove, now: number): void {
    this.others.get(move.player)?.buffer.add(move, now)
  }

  /** Removes a player who entered this chunk last; otherwise they have only moved to another one. */
  leave(player: string, chunk: ChunkAddress): void {
    const other = this.others.get(player)
    if (other && other.chunk[0] === chunk[0] && other.chunk[1] === chunk[1]) this.others.delete(player)
  }

  chunkGone(chunk: ChunkAddress): void {
    for (const player of [...this.others.keys()]) this.leave(player, chunk)
  }

  clear(): void {
    this.others.clear()
  }

  /** Returns all players in view, and where they are shown. */
  list(): OtherPlayer[] {
    return [...this.others].map(([player, { name, guest, held, figure, shown }]) => ({
      player,
      name,
      guest,
      held,
      sneaks: figure.sneaks,
      ...shown,
    }))
  }

  /** Reports whether touches is true for any player's feet. */
  anyTouches(touches: (feet: Pose) => boolean): boolean {
    return [...this.others.values()].some(({ buffer }) => touches(buffer.newest))
  }

  /** Returns the nearest player whose body, as shown, a ray hits within reach. */
  castRay(origin: Vector, dir: Vector, reach: number): TargetPlayer | null {
    let nearest: TargetPlayer | null = null
    for (const [player, { name, shown }] of this.others) {
      const distance = castBody(origin, dir, shown)
      if (distance !== null && distance <= (nearest?.distance ?? reach)) nearest = { player, name, distance }
    }
    return nearest
  }

  /** Returns the position where a player is shown; null if they are not in view. */
  shownAt(player: string): { x: number; y: number; z: number } | null {
    return this.others.get(player)?.shown ?? null
  }

  /** Animates an interaction: the first player swings an arm; the second flinches if hit. */
  animateInteraction(player: string, to: string, hit: boolean): void {
    this.figureOf(player)?.swingArm()
    if (hit) this.figureOf(to)?.flinch()
  }

  wave(player: string): void {
    this.figureOf(player)?.wave()
  }

  private figureOf(player: string): Figure | undefined {
    return (this.self?.player === player ? this.self : this.others.get(player))?.figure
  }

  /** Updates the figures; their positions are relative to the render origin. */
  update(now: number, dt: number, camera: Camera, originX: number, originZ: number): void {
    for (const other of this.others.values()) {
      const pose = other.buffer.at(now)
      const distance = Math.hypot(pose.x - other.shown.x, pose.z - other.shown.z)
      const speed = dt > 0 ? Math.min(20, distance / dt) : 0
      other.speed += (speed - other.speed) * (1 - Math.exp(-10 * dt))
      other.shown = { x: pose.x, y: pose.y, z: pose.z }
      const { tag } = other
      tag.x = pose.x - originX
      tag.y = pose.y + TAG_HEIGHT
      tag.z = pose.z - originZ
      tag.distance = Math.hypot(pose.x - camera.x, pose.y - camera.y, pose.z - camera.z)
      this.pose(other, pose, other.speed, now, dt, originX, originZ)
    }
    const others = [...this.others.values()]
    const seen = others.filter(({ shown }) => !isAround(shown, camera))
    const figures = seen.map(({ figure }) => figure)
    this.held?.show(this.visible ? seen : [], originX, originZ)
    const { self } = this
    if (self) {
      self.figure.sneaks = self.body.sneaks
      this.pose(self, self.body, self.body.walkingSpeed, now, dt, originX, originZ)
      figures.push(self.figure)
    }
    this.figures.show(this.visible ? figures : [])
    const eye = { ...camera, x: camera.x - originX, z: camera.z - originZ }
    this.tags.show(this.visible ? others.map(({ tag }) => tag) : [], eye, dt)
  }

  /** Poses a figure, and now and then lights it. */
  private pose(
    of: { figure: Figure; litAt: number },
    { x, y, z, yaw, pitch }: Pose,
    speed: number,
    now: number,
    dt: number,
    originX: number,
    originZ: number,
  ): void {
    const { figure } = of
    figure.place[0] = x - originX
    figure.place[1] = y
    figure.place[2] = z - originZ
    figure.pose(yaw, pitch, speed, dt)
    if (now - of.litAt <= LIGHT_MS) return
    of.litAt = now
    const [bx, by, bz] = [Math.floor(x), Math.floor(y) + 1, Math.floor(z)]
    figure.light(this.hasRoof(bx, by, bz), (this.lamps.glowAt(bx, by, bz, LAMP_REACH) / 15) ** 2)
  }

  private hasRoof(x: number, y: number, z: number): boolean {
    for (let up = 1; up < ROOF_REACH; up++) if (kindOf(this.world.get(x, y + up, z)).opaque) return true
    return false
  }
}

/** Reports whether the camera is in a figure, or so near that it would fill the picture: players who join stand in one place. */
export function isAround(
  feet: { x: number; y: number; z: number },
  camera: { x: number; y: number; z: number },
): boolean {
  const up = camera.y - feet.y
  return Math.hypot(camera.x - feet.x, camera.z - feet.z) < INSIDE && up > -INSIDE && up < TAG_HEIGHT + INSIDE
}
