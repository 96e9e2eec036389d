// Icons of 24 × 24, as strokes.

const SVG = 'http://www.w3.org/2000/svg'

export function strokeIcon(path: string): SVGElement {
  const icon = document.createElementNS(SVG, 'svg')
  icon.setAttribute('viewBox', '0 0 24 24')
  icon.setAttribute('aria-hidden', 'true')
  icon.classList.add('stroke-icon')
  const strokes = document.createElementNS(SVG, 'path')
  strokes.setAttribute('d', path)
  icon.append(strokes)
  return icon
}
