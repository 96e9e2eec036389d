// The other players in view: who they are, the way each is shown along, and the figures in the scene.

import { Group, type Sprite } from 'three'
import type { Avatar, AvatarMove, ChunkAddress } from '../net/protocol'
import type { TargetPlayer } from '../player/block-interaction'
import { castBody } from '../player/ray'
import { InterpolationBuffer } from '../player/interpolation-buffer'
import { kindOf } from '../world/blocks'
import type { World } from '../world/world'
import type { Camera } from './camera'
import { Figure, looksOf } from './figure'
import { disposeNameTag, makeNameTag, scaleNameTag } from './name-tag'

const TAG_HEIGHT = 2
const SHELTER = 24 // blocks overhead that are looked through for a roof
const LAMP_REACH = 7 // blocks around that are looked through for lamps
const LIGHT_MS = 500 // between two looks

interface Other {
  name: string
  guest: boolean
  chunk: ChunkAddress // where it was last seen
  track: InterpolationBuffer
  figure: Figure
  tag: Sprite
  shown: { x: number; y: number; z: number }
  moving: number // blocks/s, smoothed
  litAt: number // when the light around was looked at
}

export class Avatars {
  readonly group = new Group()
  private others = new Map<string, Other>()

  constructor(private readonly world: World) {}

  enter(avatar: Avatar, chunk: ChunkAddress, now: number): void {
    const known = this.others.get(avatar.player)
    if (known && known.name === avatar.name) {
      known.chunk = chunk
      known.track.add(avatar, now)
      return
    }
    if (known) this.forget(avatar.player)
    const figure = new Figure(avatar.player)
    const tag = makeNameTag(avatar.name, avatar.guest ?? false, looksOf(avatar.player).css)
    this.group.add(figure.body, tag)
    this.others.set(avatar.player, {
      name: avatar.name,
      guest: avatar.guest ?? false,
      chunk,
      track: new InterpolationBuffer(avatar, now),
      figure,
      tag,
      shown: { x: avatar.x, y: avatar.y, z: avatar.z },
      moving: 0,
      litAt: 0,
    })
  }

  move(move: AvatarMove, chunk: ChunkAddress, now: number): void {
    const other = this.others.get(move.player)
    if (!other) return
    other.chunk = chunk
    other.track.add(move, now)
  }

  /** Forgets a player if it was last seen in that chunk; otherwise it has only walked on. */
  leave(player: string, chunk: ChunkAddress): void {
    const other = this.others.get(player)
    if (other && other.chunk[0] === chunk[0] && other.chunk[1] === chunk[1]) this.forget(player)
  }

  chunkGone(chunk: ChunkAddress): void {
    for (const player of [...this.others.keys()]) this.leave(player, chunk)
  }

  clear(): void {
    for (const player of [...this.others.keys()]) this.forget(player)
  }

  private forget(player: string): void {
    const other = this.others.get(player)
    if (!other) return
    this.group.remove(other.figure.body, other.tag)
    other.figure.dispose()
    disposeNameTag(other.tag)
    this.others.delete(player)
  }

  list(): { player: string; name: string; guest: boolean; x: number; y: number; z: number }[] {
    return [...this.others].map(([player, other]) => {
      const { x, y, z } = other.track.newest
      return { player, name: other.name, guest: other.guest, x, y, z }
    })
  }

  /** Whether anybody's body fills part of a block. */
  some(touches: (x: number, y: number, z: number) => boolean): boolean {
    return [...this.others.values()].some(({ track }) => touches(track.newest.x, track.newest.y, track.newest.z))
  }

  /** The nearest player whose body, where it is shown, a ray meets within reach. */
  aimed(origin: [number, number, number], dir: [number, number, number], reach: number): TargetPlayer | null {
    let nearest: TargetPlayer | null = null
    for (const [player, { name, shown }] of this.others) {
      const distance = castBody(origin, dir, shown)
      if (distance !== null && distance <= (nearest?.distance ?? reach)) nearest = { player, name, distance }
    }
    return nearest
  }

  /** Where a player is shown; null for one who is not in view. */
  shownAt(player: string): { x: number; y: number; z: number } | null {
    return this.others.get(player)?.shown ?? null
  }

  /** One player does something to another: his arm swings, and whoever is hit flinches. */
  act(player: string, to: string, hit: boolean): void {
    this.others.get(player)?.figure.reach()
    if (hit) this.others.get(to)?.figure.flinch()
  }

  /** Moves the figures on; they are placed relative to the render origin. */
  update(now: number, dt: number, eyes: Camera, originX: number, originZ: number): void {
    for (const other of this.others.values()) {
      const pose = other.track.at(now)
      const way = Math.hypot(pose.x - other.shown.x, pose.z - other.shown.z)
      const speed = dt > 0 ? Math.min(20, way / dt) : 0
      other.moving += (speed - other.moving) * (1 - Math.exp(-10 * dt))
      other.shown = { x: pose.x, y: pose.y, z: pose.z }
      other.figure.body.position.set(pose.x - originX, pose.y, pose.z - originZ)
      other.figure.pose(pose.yaw, pose.pitch, other.moving, dt)
      if (now - other.litAt > LIGHT_MS) {
        other.litAt = now
        const x = Math.floor(pose.x)
        const y = Math.floor(pose.y) + 1
        const z = Math.floor(pose.z)
        other.figure.light(this.sheltered(x, y, z), this.warmth(x, y, z))
      }
      other.tag.position.set(pose.x - originX, pose.y + TAG_HEIGHT, pose.z - originZ)
      scaleNameTag(other.tag, Math.hypot(pose.x - eyes.x, pose.y - eyes.y, pose.z - eyes.z))
    }
  }

  private sheltered(x: number, y: number, z: number): boolean {
    for (let up = 1; up < SHELTER; up++) if (kindOf(this.world.get(x, y + up, z)).opaque) return true
    return false
  }

  /** Light of the nearest lamp, as if nothing stood between. */
  private warmth(x: number, y: number, z: number): number {
    let most = 0
    for (let dy = -4; dy <= 4; dy++) {
      for (let dz = -LAMP_REACH; dz <= LAMP_REACH; dz++) {
        for (let dx = -LAMP_REACH; dx <= LAMP_REACH; dx++) {
          const { glow } = kindOf(this.world.get(x + dx, y + dy, z + dz))
          if (glow > 0) most = Math.max(most, (glow - Math.abs(dx) - Math.abs(dy) - Math.abs(dz)) / 15)
        }
      }
    }
    return most * most
  }
}
