// A player's figure: its colours, and the angles of its limbs. FigureMesh draws it.

import { hash, pick } from '../world/hash'
import type { Colour } from './pixels'

/** In blocks: a figure is 32 pixels high. */
export const PIXEL = 1.8 / 32
/** Of who crouches: how far the hips, this high, are lower, as a share of that; and how far the body bends forward, in radians. */
export const HIPS = 12 * PIXEL
export const LOWER = 0.25
export const LEAN = 0.4

/** Converts hue, saturation and lightness (each 0 to 1) to a colour. */
function hsl(h: number, s: number, l: number): Colour {
  const f = (n: number) => {
    const k = (n + h * 12) % 12
    return 255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1)))
  }
  return [f(0), f(8), f(4)]
}

const SKINS: readonly [Colour, ...Colour[]] = [
  [255, 219, 186],
  [236, 188, 146],
  [198, 140, 98],
  [141, 92, 60],
  [96, 62, 44],
]
const HAIRS: readonly [Colour, ...Colour[]] = [
  [40, 30, 26],
  [92, 58, 32],
  [168, 110, 52],
  [214, 178, 98],
  [120, 120, 126],
  [140, 52, 36],
]

export interface Appearance {
  shirt: Colour
  trousers: Colour
  skin: Colour
  hair: Colour
  /** The second colour, and bits: stripe, braces, cuffs, cap; the high four are the pattern of the shirt. */
  accent: readonly [red: number, green: number, blue: number, bits: number]
  css: string
}

/**
 * The patterns of skins, by number (docs/protocol.md): 8 × 4 pixels, a byte for each row from the bottom, that have the second
 * colour. 0 and 1 are plain.
 */
export const PATTERNS = [0, 0, 0x0000ffff, 0xcccc3333, 0xf0f0f0f0, 0x00666600, 0x66cc9933]

/** The skins that players have chosen, by id: of those who have been in view, the latest last. */
export const skins = new Map<string, number>()
const MAX_SKINS = 4096
let ownID = ''

/** Sets the skin that a player has chosen (docs/protocol.md); 0 is none. If there are too many, the oldest is dropped. */
export function setSkin(id: string, skin: number): void {
  skins.delete(id)
  if (skin) skins.set(id, skin)
  if (skins.size <= MAX_SKINS) return
  for (const oldest of skins.keys())
    if (oldest !== ownID) {
      skins.delete(oldest)
      return
    }
}

/** Sets the skin of the player themselves, which is never dropped. */
export function setOwnSkin(id: string, skin: number): void {
  ownID = id
  setSkin(id, skin)
}

/** Returns a colour of a skin, red, green and blue in 4 bits each. */
function colourOf(bits: number): Colour {
  return [17 * ((bits >> 8) & 15), 17 * ((bits >> 4) & 15), 17 * (bits & 15)]
}

/** Returns how a player looks: by the skin that they have chosen, if any, otherwise by their id. It is the same on every client. */
export function appearanceOf(id: string): Appearance {
  let seed = 7
  for (const letter of id) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) | 0
  const hue = hash(1, 0, seed)
  const given = {
    shirt: hsl(hue, 0.62, 0.5),
    trousers: hsl((hue + 0.45 + 0.2 * hash(2, 0, seed)) % 1, 0.35, 0.3),
    skin: pick(SKINS, hash(3, 0, seed)),
    hair: pick(HAIRS, hash(4, 0, seed)),
    accent: [...hsl((hue + 0.2 + 0.6 * hash(5, 0, seed)) % 1, 0.7, 0.6), Math.floor(16 * hash(6, 0, seed))] as const,
    css: cssOf(hsl(hue, 0.62, 0.58)),
  }
  const skin = skins.get(id)
  if (!skin) return given
  const [main, second] = [colourOf(skin >>> 12), colourOf(skin)]
  const pattern = skin >>> 24
  return {
    ...given,
    shirt: main,
    trousers: [second[0] * 0.6, second[1] * 0.6, second[2] * 0.6],
    accent: [...second, (pattern < PATTERNS.length ? pattern : 0) << 4],
    css: cssOf(main),
  }
}

function cssOf(colour: Colour): string {
  return `rgb(${colour.map(Math.round).join(' ')})`
}

export class Figure {
  readonly appearance
  /** The position relative to the render origin, and the yaw. */
  readonly place: [x: number, y: number, z: number, yaw: number] = [0, 0, 0, 0]
  /** The angles of the head, the legs and the right arm, and that of both arms outwards. */
  readonly limbs: [head: number, legs: number, rightArm: number, outwards: number] = [0, 0, 0, 0]
  /** Whether there is a roof, the light of nearby lamps, the red of a hit, and how far the figure crouches: 0 to 1 each. */
  readonly state: [roofed: number, warmth: number, hurt: number, crouch: number] = [0, 0, 0, 0]
  sneaks = false
  private swing = 0
  private gait = 0
  private hurt = 0 // 1 at a hit, then fading
  private armSwing = 0 // 1 at the start of a swing, then falling
  private waving = 0 // 1 at the start, then falling

  constructor(id: string) {
    this.appearance = appearanceOf(id)
  }

  /** Poses the figure: angles, and limbs that swing at a speed in blocks/s; dt is the time since the last call in seconds. */
  pose(yaw: number, pitch: number, speed: number, dt: number): void {
    this.gait += (Math.min(1, speed / 5) - this.gait) * (1 - Math.exp(-8 * dt))
    this.swing += dt * (3 + 1.5 * Math.min(speed, 7))
    const angle = Math.sin(this.swing) * 0.85 * this.gait
    this.place[3] = yaw
    this.state[3] += (Number(this.sneaks) - this.state[3]) * (1 - Math.exp(-14 * dt))
    const lean = LEAN * this.state[3] // which the head and the hand with the block do not share
    this.limbs[0] = -pitch * 0.8 - lean
    this.limbs[1] = angle
    const raised = Math.min(1, 5 * this.waving, 5 * (1 - this.waving))
    this.limbs[2] =
      angle - lean - 1.6 * Math.sin(Math.PI * this.armSwing) - raised * (2.6 + 0.4 * Math.sin(32 * this.waving))
    this.waving = Math.max(0, this.waving - dt / 2)
    this.limbs[3] = 0.05 + Math.sin(this.swing * 0.35) * 0.03
    this.armSwing = Math.max(0, this.armSwing - dt / 0.3)
    this.hurt = Math.max(0, this.hurt - dt / 0.45)
    this.state[2] = this.hurt
  }

  /** Flashes red: the player was hit. */
  flinch(): void {
    this.hurt = 1
  }

  /** Swings the right arm: the player hits or gives. */
  swingArm(): void {
    this.armSwing = 1
  }

  /** Raises the right arm, and waves it. */
  wave(): void {
    if (this.waving === 0) this.waving = 1
  }

  /** Sets the ambient light: whether there is a roof, and the light of nearby lamps, 0 to 1. */
  light(roofed: boolean, warmth: number): void {
    this.state[0] = roofed ? 1 : 0
    this.state[1] = warmth
  }
}
