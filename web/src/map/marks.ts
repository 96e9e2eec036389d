// What is marked on the map: players, claims, bookmarks, the place that is selected, and how long a line is.

import { appearanceOf } from '../render/figure'
import type { Claim } from '../world/claims'
import { across, down, type Frame, type Size } from './frame'

const FONT = '600 13px system-ui, sans-serif'
const EDGE = 7 // pixels from the edge, where players are marked who are farther away
const SMALLEST_NAMED = 24 // pixels of a claim
const SCALE_BAR = 120 // pixels, at most

export interface Marked {
  player: string
  name: string
  x: number
  z: number
}

/** Where the own player is. */
export interface Place {
  x: number
  y: number
  z: number
  yaw: number
}

export function drawPlayer(context: CanvasRenderingContext2D, frame: Frame, { player, name, x, z }: Marked): void {
  const [px, py] = [across(frame, x), down(frame, z)]
  const at = [within(px, frame.width), within(py, frame.height)] as const
  const inside = at[0] === px && at[1] === py
  context.beginPath()
  context.arc(...at, inside ? 5 : 3.5, 0, 2 * Math.PI)
  context.fillStyle = appearanceOf(player).css
  context.fill()
  context.lineWidth = 2
  context.strokeStyle = '#fff'
  context.stroke()
  if (inside) drawText(context, name, px, py - 10)
}

/** Draws the own player, as an arrow. */
export function drawPointer(context: CanvasRenderingContext2D, x: number, y: number, yaw: number): void {
  context.save()
  context.translate(x, y)
  context.rotate(Math.PI + yaw) // yaw 0 is south
  context.beginPath()
  context.moveTo(0, -14)
  context.lineTo(10, 11)
  context.lineTo(0, 6)
  context.lineTo(-10, 11)
  context.closePath()
  context.fillStyle = '#fff'
  context.fill()
  context.lineWidth = 2
  context.strokeStyle = 'rgb(0 0 0 / 75%)'
  context.stroke()
  context.restore()
}

export function drawSelf(context: CanvasRenderingContext2D, frame: Frame, { x, z, yaw }: Place): void {
  drawPointer(context, within(across(frame, x), frame.width, 16), within(down(frame, z), frame.height, 16), yaw)
}

export function drawClaim(
  context: CanvasRenderingContext2D,
  frame: Frame,
  { owner, name, min, max, member }: Claim,
): void {
  const [left, top] = [across(frame, min[0]), down(frame, min[2])]
  const [width, height] = [across(frame, max[0] + 1) - left, down(frame, max[2] + 1) - top]
  context.fillStyle = member ? 'rgb(143 211 90 / 18%)' : 'rgb(255 184 77 / 18%)'
  context.fillRect(left, top, width, height)
  for (const [line, colour] of [
    [5, 'rgb(0 0 0 / 55%)'],
    [2, member ? '#b8ff6a' : '#ffb84d'],
  ] as const) {
    context.lineWidth = line
    context.strokeStyle = colour
    context.strokeRect(left, top, width, height)
  }
  if (width >= SMALLEST_NAMED) drawText(context, `${name} · ${owner}`, left + width / 2, top - 6)
}

export function drawBookmark(
  context: CanvasRenderingContext2D,
  frame: Frame,
  { name, x, z }: { name: string; x: number; z: number },
): void {
  const [px, py] = [across(frame, x + 0.5), down(frame, z + 0.5)]
  context.beginPath()
  context.moveTo(px, py)
  context.lineTo(px - 6, py - 11)
  context.arc(px, py - 13, 6.5, Math.PI - 0.3, 0.3)
  context.closePath()
  context.fillStyle = '#ffcf70'
  context.fill()
  context.lineWidth = 1.5
  context.strokeStyle = '#2b1d00'
  context.stroke()
  drawText(context, name, px, py - 24)
}

/** Draws a cross at a block. */
export function drawSelected(context: CanvasRenderingContext2D, frame: Frame, x: number, z: number): void {
  const [px, py] = [across(frame, x + 0.5), down(frame, z + 0.5)]
  for (const [width, colour] of [
    [5, 'rgb(0 0 0 / 70%)'],
    [2, '#fff'],
  ] as const) {
    context.beginPath()
    for (const [dx, dy] of [
      [1, 0],
      [-1, 0],
      [0, 1],
      [0, -1],
    ] as const) {
      context.moveTo(px + 4 * dx, py + 4 * dy)
      context.lineTo(px + 12 * dx, py + 12 * dy)
    }
    context.lineWidth = width
    context.strokeStyle = colour
    context.stroke()
  }
}

/** Draws a line whose length is a round number of blocks, and that number. */
export function drawScale(context: CanvasRenderingContext2D, { height, scale }: Size & { scale: number }): void {
  const blocks = roundDown(SCALE_BAR / scale)
  const [x, y, width] = [14, height - 14, blocks * scale]
  for (const [line, colour] of [
    [5, 'rgb(0 0 0 / 70%)'],
    [2, '#fff'],
  ] as const) {
    context.beginPath()
    context.moveTo(x, y - 6)
    context.lineTo(x, y)
    context.lineTo(x + width, y)
    context.lineTo(x + width, y - 6)
    context.lineWidth = line
    context.strokeStyle = colour
    context.stroke()
  }
  drawText(context, blocks >= 1000 ? `${blocks / 1000} km` : `${blocks} m`, x + width / 2, y - 8)
}

/** Returns the largest of 1, 2, 5, 10, 20, … that is not above a number; at least 1. */
export function roundDown(most: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)))
  return [5, 2].map((n) => n * power).find((n) => n <= most) ?? power
}

function drawText(context: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  context.font = FONT
  context.textAlign = 'center'
  context.lineJoin = 'round'
  context.lineWidth = 4
  context.strokeStyle = 'rgb(0 0 0 / 70%)'
  context.strokeText(text, x, y)
  context.fillStyle = '#fff'
  context.fillText(text, x, y)
}

function within(at: number, size: number, edge = EDGE): number {
  return Math.min(Math.max(at, edge), size - edge)
}
