// The F3 panel.

import { el, show } from './dom'

export class Debug {
  readonly root = el('pre', 'debug hidden')
  open = false

  toggle(): void {
    this.open = !this.open
    show(this.root, this.open)
  }

  show(rows: [string, string][]): void {
    const width = Math.max(...rows.map(([name]) => name.length))
    this.root.textContent = rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')
  }
}
