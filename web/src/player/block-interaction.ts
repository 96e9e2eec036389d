// What the mouse buttons do to the world: break, place, pick, again and again while held.

import { AIR, boxOf, isAimable, isPlant, isReplaceable, kindOf } from '../world/blocks'
import type { World } from '../world/world'
import { EYE, bodyTouchesBlock, type Body } from './body'
import { castRay, direction, type Hit } from './ray'

/** Another player who is aimed at. */
export interface TargetPlayer {
  player: string
  name: string
  /** From the eyes, in blocks. */
  distance: number
}

const REPEAT_MS = 230
const FIRST_REPEAT_MS = 320

export const LEFT = 0
export const MIDDLE = 1
export const RIGHT = 2

export interface InteractionHandlers {
  /** Makes an edit; false if it could not be made. */
  edit(x: number, y: number, z: number, block: number): boolean
  /** The block in hand. */
  inHand(): number
  pick(block: number): void
  anyoneTouches(x: number, y: number, z: number): boolean
  /** The nearest of the others whose body a ray meets within reach. */
  person(origin: [number, number, number], dir: [number, number, number], reach: number): TargetPlayer | null
  hit(person: TargetPlayer): void
  broke(x: number, y: number, z: number, block: number): void
  placed(block: number): void
  swing(): void
}

export class BlockInteraction {
  private again = 0
  /** The block aimed at. */
  aim: Hit | null = null
  /** The player aimed at, if no block is nearer. */
  person: TargetPlayer | null = null
  reach = 8

  constructor(
    private readonly world: World,
    private readonly body: Body,
    private readonly deeds: InteractionHandlers,
  ) {}

  /** Finds what is aimed at; once a frame. */
  look(): void {
    const { x, y, z, yaw, pitch } = this.body
    // the server measures to the nearest point of the block, so the face that is hit is within reach, too
    const eyes: [number, number, number] = [x, y + EYE, z]
    const ahead = direction(yaw, pitch)
    this.aim = castRay(this.world, eyes, ahead, this.reach, isAimable, boxOf)
    const { aim } = this
    if (aim && !this.world.loaded(aim.x, aim.z)) this.aim = null
    this.person = this.deeds.person(eyes, ahead, Math.min(this.reach, this.aim?.distance ?? Infinity))
  }

  press(button: number, now: number): void {
    this.again = now + FIRST_REPEAT_MS
    this.look()
    if (button === LEFT && this.person) {
      this.again = Infinity // a blow is one: held on, it would break what is behind him
      this.deeds.swing()
      this.deeds.hit(this.person)
      return
    }
    this.act(button)
  }

  /** Repeats while a button is held. */
  hold(button: number, now: number): void {
    if (now < this.again) return
    this.again = now + REPEAT_MS
    this.act(button)
  }

  private act(button: number): void {
    this.look()
    if (button === LEFT && this.person) return // a blow is a click of its own
    if (button === LEFT) this.breakBlock()
    else if (button === RIGHT) this.placeBlock()
    else if (button === MIDDLE && this.aim) this.deeds.pick(this.world.get(this.aim.x, this.aim.y, this.aim.z))
  }

  private breakBlock(): void {
    this.deeds.swing()
    if (!this.aim) return
    const { x, y, z } = this.aim
    const block = this.world.get(x, y, z)
    if (!kindOf(block).breakable) return
    if (this.deeds.edit(x, y, z, AIR)) this.deeds.broke(x, y, z, block)
    // what grew on it falls, too
    for (let above = y + 1; isPlant(this.world.get(x, above, z)); above++) {
      const plant = this.world.get(x, above, z)
      if (this.deeds.edit(x, above, z, AIR)) this.deeds.broke(x, above, z, plant)
    }
  }

  private placeBlock(): void {
    const { aim } = this
    if (!aim) return
    const block = this.deeds.inHand()
    const there = this.world.get(aim.x, aim.y, aim.z)
    const into = isPlant(there) && there !== block // a plant gives way; on its like another one is put
    const x = into ? aim.x : aim.x + aim.normal[0]
    const y = into ? aim.y : aim.y + aim.normal[1]
    const z = into ? aim.z : aim.z + aim.normal[2]
    if (y < 0 || y >= this.world.height || !isReplaceable(this.world.get(x, y, z))) return
    const below = this.world.get(x, y - 1, z)
    if (isPlant(block) && below !== block && !kindOf(below).solid) return // it wants something to stand on
    if (kindOf(block).solid) {
      const { body } = this
      if (bodyTouchesBlock(body.x, body.y, body.z, x, y, z) || this.deeds.anyoneTouches(x, y, z)) return
    }
    this.deeds.swing()
    if (this.deeds.edit(x, y, z, block)) this.deeds.placed(block)
  }
}
