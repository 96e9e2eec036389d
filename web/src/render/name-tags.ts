// The players' names above their heads, drawn with one call from an atlas. They stay readable at a distance, and fade beyond
// FADES_FROM blocks, and behind nearer ones, so that a crowd does not bury the view.

import { Attribute, Geometry } from '../gl/geometry'
import { Mesh } from '../gl/mesh'
import { Program } from '../gl/program'
import { upright } from '../gl/shapes'
import { Texture } from '../gl/texture'
import type { Pose } from '../motion/pose'
import { texts } from '../text/texts'
import { context2D } from './canvas'

const HEIGHT = 48 // pixels of a slot
const WIDTH = 512
const COLUMNS = 2
const MAX_SLOTS = 128
const BLOCKS_HIGH = 0.38
const GROWS_FROM = 6 // in blocks: beyond this distance its size on the screen is constant
const FADES_FROM = 48
const GONE_FROM = 64
const FADE_S = 0.15
const FAINT = 0.35
const LEAST_DEPTH = 0.1 // in blocks: what is nearer to the camera's plane, or behind it, is not in the picture
/** The share of a tag that nearer ones may cover: more than MOST_COVERED hides it, and it is back below LEAST_COVERED. */
const MOST_COVERED = 0.35
const LEAST_COVERED = 0.15

const VERTEX = /* glsl */ `
precision highp float;
uniform mat4 viewMatrix, projectionMatrix;
uniform float rowHeight;
in vec3 position;
in vec3 place, size, area;
out vec2 uv;
out float opacity;
void main() {
  uv = vec2(area.x + (position.x + 0.5) * area.z, area.y - (0.5 - position.y) * rowHeight);
  opacity = size.z;
  vec4 at = viewMatrix * vec4(place, 1.0);
  at.xy += vec2(position.x * size.x, (position.y + 0.5) * size.y);
  gl_Position = projectionMatrix * at;
}
`

const FRAGMENT = /* glsl */ `
precision highp float;
uniform sampler2D atlas;
in vec2 uv;
in float opacity;
out vec4 colour_;
void main() {
  vec4 texel = texture(atlas, uv);
  colour_ = vec4(texel.rgb, texel.a * opacity);
}
`

export interface NameTag {
  readonly text: string
  readonly guest: boolean
  readonly colour: string
  /** Where it is shown, relative to the render origin, and its distance from the camera. */
  x: number
  y: number
  z: number
  distance: number
  /** Of a player who sneaks. */
  faint: boolean
  /** 0 while nearer ones cover it, otherwise 1; in between while it fades. */
  shown: number
}

/** A tag on a plane at a distance of 1 from the camera. */
export interface TagBox {
  left: number
  right: number
  bottom: number
  top: number
  wasClear: boolean
}

/** Reports of each tag, the nearest first, whether it is clear of those before it that are. */
export function findClear(boxes: readonly TagBox[]): boolean[] {
  const clear: TagBox[] = []
  return boxes.map((box) => {
    const most = (box.wasClear ? MOST_COVERED : LEAST_COVERED) * (box.right - box.left) * (box.top - box.bottom)
    const covers = ({ left, right, bottom, top }: TagBox) =>
      Math.max(0, Math.min(right, box.right) - Math.max(left, box.left)) *
        Math.max(0, Math.min(top, box.top) - Math.max(bottom, box.bottom)) >
      most
    if (clear.some(covers)) return false
    clear.push(box)
    return true
  })
}

/** A part of the atlas. */
interface Slot {
  index: number
  width: number // of the drawn tag, in pixels
}

const PROGRAM = new Program(VERTEX, FRAGMENT)
/** Of an instance, three numbers each: see the vertex shader. */
const ATTRIBUTES = ['place', 'size', 'area'] as const

export class NameTags {
  readonly mesh: Mesh
  private readonly canvas = document.createElement('canvas')
  private readonly slots = new Map<NameTag, Slot>()
  private free: number[] = []
  private capacity = 0 // slots of the atlas, and instances
  private readonly uniforms = { atlas: { value: null as Texture | null }, rowHeight: { value: 1 } }

  constructor() {
    const material = { program: PROGRAM, uniforms: this.uniforms, transparent: true, depthWrite: false }
    this.mesh = new Mesh(new Geometry({}), material, 4)
    this.mesh.visible = false
  }

  /**
   * Shows the tags that are near enough, the farthest first, as a camera sees them whose position is relative to the render origin. Those
   * beyond MAX_SLOTS are not shown. dt is the time since the last call in seconds.
   */
  show(tags: NameTag[], camera: Pose, dt: number): void {
    const near = tags.filter(({ distance }) => distance < GONE_FROM).sort((a, b) => a.distance - b.distance)
    near.splice(MAX_SLOTS)
    this.keepSlots(new Set(near))
    for (const tag of near) if (!this.slots.has(tag)) this.draw(tag)
    this.mesh.visible = near.length > 0
    if (!this.mesh.visible) return
    const ahead = near.flatMap((tag) => {
      const box = this.boxOf(tag, camera)
      return box ? [{ tag, box }] : []
    })
    const clear = findClear(ahead.map(({ box }) => box))
    ahead.forEach(({ tag }, i) => {
      tag.shown = Math.min(1, Math.max(0, tag.shown + (clear[i] ? dt : -dt) / FADE_S))
    })
    near.reverse().forEach((tag, i) => this.place(tag, i))
    const { geometry } = this.mesh
    for (const name of ATTRIBUTES) geometry.attributes[name]?.change(near.length)
    geometry.instances = near.length
  }

  /** Returns the box of a tag; null if it is not ahead of the camera. */
  private boxOf(tag: NameTag, { x, y, z, yaw, pitch }: Pose): TagBox | null {
    const [dx, dy, dz] = [tag.x - x, tag.y - y, tag.z - z]
    const ahead = dz * Math.cos(yaw) - dx * Math.sin(yaw)
    const depth = ahead * Math.cos(pitch) + dy * Math.sin(pitch)
    if (depth < LEAST_DEPTH) return null
    const across = (-dx * Math.cos(yaw) - dz * Math.sin(yaw)) / depth
    const bottom = (dy * Math.cos(pitch) - ahead * Math.sin(pitch)) / depth
    const [wide, high] = this.sizeOf(tag).map((blocks) => blocks / depth) as [number, number]
    const [left, right, top] = [across - wide / 2, across + wide / 2, bottom + high]
    return { left, right, bottom, top, wasClear: tag.shown > 0.5 }
  }

  private sizeOf(tag: NameTag): [wide: number, high: number] {
    const high = BLOCKS_HIGH * Math.max(1, tag.distance / GROWS_FROM)
    return [(high * (this.slots.get(tag)?.width ?? 0)) / HEIGHT, high]
  }

  private place(tag: NameTag, i: number): void {
    const slot = this.slots.get(tag)
    if (!slot) return
    const far = Math.min(1, (GONE_FROM - tag.distance) / (GONE_FROM - FADES_FROM))
    const opacity = tag.shown * far * (tag.faint ? FAINT : 1)
    const left = (slot.index % COLUMNS) / COLUMNS
    const top = Math.floor(slot.index / COLUMNS) * this.uniforms.rowHeight.value
    const values = {
      place: [tag.x, tag.y, tag.z],
      size: [...this.sizeOf(tag), opacity],
      area: [left, 1 - top, slot.width / (WIDTH * COLUMNS)],
    }
    for (const name of ATTRIBUTES) this.mesh.geometry.attributes[name]?.values.set(values[name], i * 3)
  }

  /** Frees the slots of all other tags. */
  private keepSlots(tags: Set<NameTag>): void {
    for (const [tag, { index }] of this.slots) {
      if (tags.has(tag)) continue
      this.slots.delete(tag)
      this.free.push(index)
    }
  }

  private draw(tag: NameTag): void {
    if (this.free.length === 0) this.grow()
    const index = this.free.pop()
    if (index === undefined) return
    const context = context2D(this.canvas)
    const x = (index % COLUMNS) * WIDTH
    const y = Math.floor(index / COLUMNS) * HEIGHT
    const text = tag.guest ? `${tag.text} (${texts.guest})` : tag.text
    context.clearRect(x, y, WIDTH, HEIGHT)
    context.font = `600 28px system-ui, "Segoe UI", Roboto, sans-serif`
    const width = Math.min(WIDTH - 4, Math.ceil(context.measureText(text).width) + 34)
    context.fillStyle = 'rgba(12, 17, 23, 0.62)'
    context.beginPath()
    context.roundRect(x, y + 3, width, HEIGHT - 6, 12)
    context.fill()
    context.fillStyle = tag.colour
    context.beginPath()
    context.roundRect(x, y + 3, 7, HEIGHT - 6, [12, 0, 0, 12])
    context.fill()
    context.textBaseline = 'middle'
    context.textAlign = 'center'
    context.fillStyle = tag.guest ? '#c9d2da' : '#ffffff'
    context.fillText(text, x + width / 2 + 3, y + HEIGHT / 2 + 1.5, width - 14)
    this.slots.set(tag, { index, width })
    this.uniforms.atlas.value?.change()
  }

  /** Doubles the atlas. The tags are drawn again. */
  private grow(): void {
    const tags = [...this.slots.keys()]
    this.slots.clear()
    this.capacity = Math.max(16, this.capacity * 2)
    this.free = Array.from({ length: this.capacity }, (_, i) => this.capacity - 1 - i)
    this.canvas.width = WIDTH * COLUMNS
    this.canvas.height = (HEIGHT * this.capacity) / COLUMNS
    this.uniforms.atlas.value?.dispose()
    this.uniforms.atlas.value = new Texture(this.canvas, { format: 'rgba8', enlarge: 'linear', mipmaps: 'made' })
    this.uniforms.rowHeight.value = COLUMNS / this.capacity
    const { attributes, index } = upright(1, 1)
    const instances = ATTRIBUTES.map((name) => {
      const values = new Float32Array(this.capacity * 3)
      return [name, new Attribute(values, 3, { instanced: true })] as const
    })
    this.mesh.geometry.dispose()
    this.mesh.geometry = new Geometry({ attributes: { ...attributes, ...Object.fromEntries(instances) }, index })
    for (const tag of tags) this.draw(tag)
  }
}
