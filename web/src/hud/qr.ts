// QR codes of links.

import { encode } from 'uqr'
import { laterTexts } from '../text/later-texts'
import { el } from './dom'
import './key-dialog.css'

const SCALE = 4 // pixels for each module

export function qrCode(text: string): HTMLCanvasElement {
  const { size, data } = encode(text, { border: 2 })
  const canvas = el('canvas', 'qr')
  canvas.width = canvas.height = size * SCALE
  canvas.setAttribute('aria-label', laterTexts.qrCode)
  const context = canvas.getContext('2d')
  if (!context) return canvas
  context.fillStyle = '#fff'
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.fillStyle = '#000'
  data.forEach((row, y) => {
    row.forEach((dark, x) => {
      if (dark) context.fillRect(x * SCALE, y * SCALE, SCALE, SCALE)
    })
  })
  return canvas
}
