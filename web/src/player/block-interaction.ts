// Turns mouse buttons into actions: break, place, pick and hit. Breaking and placing repeat while a button is held.

import {
  AIR,
  WATER,
  boxesOf,
  isAimable,
  isDoor,
  isPlant,
  isReplaceable,
  isSign,
  isStairs,
  joinSlabs,
  kindOf,
  otherHalf,
  stateFor,
  usedBlock,
} from '../world/blocks'
import { placeStairs } from '../world/stairs'
import type { World } from '../world/world'
import { EYE, bodyTouchesBlock, type Body } from './body'
import { castRay, directionThrough, type Hit, type Vector } from './ray'

/** The other player that the crosshair is on. */
export interface TargetPlayer {
  player: string
  name: string
  /** From the camera, in blocks. */
  distance: number
}

const REPEAT_MS = 230
const FIRST_REPEAT_MS = 320

export const LEFT = 0
export const MIDDLE = 1
export const RIGHT = 2

export interface InteractionHandlers {
  /** Makes an edit, or, if it follows, only if the one before is made, too; returns false if it could not be made. */
  edit(x: number, y: number, z: number, block: number, follows?: boolean): boolean
  /** Returns the selected block. */
  selectedBlock(): number
  pick(block: number): void
  /** Reports whether the claims that are known let the player build there. */
  mayBuild(x: number, y: number, z: number): boolean
  /** Reports whether another player is in what a block would fill there. */
  anyoneTouches(x: number, y: number, z: number, block: number): boolean
  /** Returns the nearest other player whose body a ray hits within reach. */
  castPlayers(origin: Vector, dir: Vector, reach: number): TargetPlayer | null
  hit(target: TargetPlayer): void
  broke(): void
  placed(): void
  swing(): void
  /** Lets the player write on a sign. */
  write(x: number, y: number, z: number): void
}

export class BlockInteraction {
  private repeatAt = 0 // ms
  /** The block aimed at. */
  aim: Hit | null = null
  /** The player aimed at, if no block is nearer. */
  target: TargetPlayer | null = null
  reach = 8
  /**
   * The point of the screen that the player aims at, as tangents of its angles right of the middle and above it. Null if a player
   * with touch controls points at nothing: then they aim at the middle, and no block is outlined.
   */
  sight: readonly [right: number, up: number] | null = [0, 0]

  constructor(
    private readonly world: World,
    private readonly body: Body,
    private readonly handlers: InteractionHandlers,
  ) {}

  /** Aims, and repeats the actions of held buttons; called once per frame. */
  update(now: number, holds: (button: number) => boolean): void {
    this.updateAim()
    for (const button of [LEFT, RIGHT, MIDDLE]) if (holds(button)) this.hold(button, now)
  }

  /** Updates the block and the player aimed at. */
  updateAim(): void {
    const { x, y, z } = this.body
    // the server measures reach to the nearest point of the block, so the face that is hit is within reach
    const eye: Vector = [x, y + EYE, z]
    const ahead = this.ahead()
    // with water in the hand, water can be aimed at, and removed, unless the eyes are in it
    const under = this.world.get(...(eye.map(Math.floor) as [number, number, number])) === WATER
    const stops = this.handlers.selectedBlock() === WATER && !under ? (block: number) => block !== AIR : isAimable
    this.aim = castRay(this.world, eye, ahead, this.reach, stops, boxesOf)
    const { aim } = this
    if (aim && !this.world.loaded(aim.x, aim.z)) this.aim = null
    this.target = this.handlers.castPlayers(eye, ahead, Math.min(this.reach, this.aim?.distance ?? Infinity))
  }

  /** Returns the direction that the player aims in, a unit vector. */
  ahead(): Vector {
    const [right, up] = this.sight ?? [0, 0]
    return directionThrough(this.body.yaw, this.body.pitch, right, up)
  }

  press(button: number, now: number): void {
    this.repeatAt = now + FIRST_REPEAT_MS
    this.updateAim()
    if (button === LEFT && this.target) {
      this.repeatAt = Infinity // one hit per click: holding the button must not break the block behind the player
      this.handlers.swing()
      this.handlers.hit(this.target)
      return
    }
    this.act(button)
  }

  /** Ignores buttons that are held, until the next click. */
  rest(): void {
    this.repeatAt = Infinity
  }

  private hold(button: number, now: number): void {
    if (now < this.repeatAt) return
    this.repeatAt = now + REPEAT_MS
    this.act(button)
  }

  private act(button: number): void {
    this.updateAim()
    if (button === LEFT && this.target) return // hits need a new click
    if (button === LEFT) this.breakBlock()
    else if (button === RIGHT) this.placeBlock()
    else if (button === MIDDLE && this.aim)
      this.handlers.pick(kindOf(this.world.get(this.aim.x, this.aim.y, this.aim.z)).base)
  }

  private breakBlock(): void {
    this.handlers.swing()
    if (!this.aim) return
    const { x, y, z } = this.aim
    const block = this.world.get(x, y, z)
    if (!kindOf(block).breakable) return
    const half = otherHalf(this.world, x, y, z)
    if (half !== null && this.handlers.edit(x, half, z, AIR)) this.handlers.broke()
    if (this.handlers.edit(x, y, z, AIR)) this.handlers.broke()
    // plants on top of it break too
    for (let above = y + 1; isPlant(this.world.get(x, above, z)); above++) {
      if (this.handlers.edit(x, above, z, AIR)) this.handlers.broke()
    }
  }

  private placeBlock(): void {
    const { aim } = this
    if (!aim) return
    const there = this.world.get(aim.x, aim.y, aim.z)
    if (isSign(there)) {
      this.rest()
      this.handlers.write(aim.x, aim.y, aim.z)
      return
    }
    if (this.use(aim, there)) {
      this.rest()
      return
    }
    const block = this.handlers.selectedBlock()
    const joined = joinSlabs(there, block, aim.normal[1])
    if (joined !== null) {
      this.put(aim.x, aim.y, aim.z, joined)
      return
    }
    const into = isPlant(there) && there !== block // replaces a plant, unless it is the same kind: that one is stacked
    const x = into ? aim.x : aim.x + aim.normal[0]
    const y = into ? aim.y : aim.y + aim.normal[1]
    const z = into ? aim.z : aim.z + aim.normal[2]
    const replaced = this.world.get(x, y, z)
    if (!isReplaceable(replaced) || replaced === block) return
    const below = this.world.get(x, y - 1, z)
    if (isPlant(block) && below !== block && !kindOf(below).solid) return // plants need ground, or a plant of the same kind
    const ahead = this.ahead()
    const state = stateFor(
      block,
      ahead,
      into ? [0, 1, 0] : aim.normal,
      this.body.y + EYE + ahead[1] * aim.distance - aim.y,
    )
    if (state < 0) return
    if (isDoor(state) && !isReplaceable(this.world.get(x, y + 1, z))) return
    if (isStairs(state)) {
      const [placed, ...corners] = placeStairs(this.world, x, y, z, state)
      if (!placed || !this.put(x, y, z, placed.block)) return
      for (const c of corners) if (this.handlers.mayBuild(c.x, y, c.z)) this.put(c.x, y, c.z, c.block, true)
      return
    }
    if (!this.put(x, y, z, state)) return
    if (isDoor(state)) this.put(x, y + 1, z, state)
    if (usedBlock(state) !== null) this.rest() // holding the button must not open it
    if (!isSign(state)) return
    this.rest()
    this.handlers.write(x, y, z)
  }

  /** Opens or closes a block; returns false if it is none that opens. */
  private use({ x, y, z }: Hit, block: number): boolean {
    const used = usedBlock(block)
    if (used === null) return false
    const half = otherHalf(this.world, x, y, z)
    if (this.put(x, y, z, used) && half !== null) this.put(x, half, z, used)
    return true
  }

  /** Places a block, unless somebody stands there; reports whether it did. */
  private put(x: number, y: number, z: number, block: number, follows = false): boolean {
    if (y < 0 || y >= this.world.height) return false
    if (bodyTouchesBlock(this.body, x, y, z, block) || this.handlers.anyoneTouches(x, y, z, block)) return false
    this.handlers.swing()
    if (!this.handlers.edit(x, y, z, block, follows)) return false
    this.handlers.placed()
    return true
  }
}
