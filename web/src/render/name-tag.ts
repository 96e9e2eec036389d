// A player's name above their head: a sprite that stays readable at a distance.

import { CanvasTexture, LinearMipmapLinearFilter, SRGBColorSpace, Sprite, SpriteMaterial } from 'three'
import { context2D } from './canvas'

const HEIGHT = 64 // pixels
const BLOCKS_HIGH = 0.38
const GROWS_FROM = 6 // in blocks: beyond this distance its size on the screen is constant

export function makeNameTag(name: string, guest: boolean, colour: string): Sprite {
  const text = guest ? `${name} (guest)` : name
  const canvas = document.createElement('canvas')
  const context = context2D(canvas)
  const font = `600 38px system-ui, "Segoe UI", Roboto, sans-serif`
  context.font = font
  const width = Math.ceil(context.measureText(text).width) + 44
  canvas.width = width
  canvas.height = HEIGHT
  context.fillStyle = 'rgba(12, 17, 23, 0.62)'
  context.beginPath()
  context.roundRect(0, 4, width, HEIGHT - 8, 16)
  context.fill()
  context.fillStyle = colour
  context.beginPath()
  context.roundRect(0, 4, 9, HEIGHT - 8, [16, 0, 0, 16])
  context.fill()
  context.font = font
  context.textBaseline = 'middle'
  context.textAlign = 'center'
  context.fillStyle = guest ? '#c9d2da' : '#ffffff'
  context.fillText(text, width / 2 + 4, HEIGHT / 2 + 2)
  const texture = new CanvasTexture(canvas)
  texture.colorSpace = SRGBColorSpace
  texture.minFilter = LinearMipmapLinearFilter
  const sprite = new Sprite(new SpriteMaterial({ map: texture, transparent: true, depthWrite: false, fog: false }))
  sprite.userData.aspect = width / HEIGHT
  sprite.center.set(0.5, 0)
  sprite.renderOrder = 4
  return sprite
}

/** Scales a tag for its distance from the camera, in blocks. */
export function scaleNameTag(sprite: Sprite, distance: number): void {
  const high = BLOCKS_HIGH * Math.max(1, distance / GROWS_FROM)
  sprite.scale.set(high * (sprite.userData.aspect as number), high, 1)
}

export function disposeNameTag(sprite: Sprite): void {
  sprite.material.map?.dispose()
  sprite.material.dispose()
}
