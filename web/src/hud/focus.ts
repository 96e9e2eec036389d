// The keyboard's focus in dialogs.

const FOCUSABLE = 'button, input, textarea, select, a[href], summary'

export function focusable(root: ParentNode): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>(FOCUSABLE)].filter(
    (element) => element.offsetParent !== null && !element.matches(':disabled, [tabindex="-1"]'),
  )
}

/** Moves the focus some elements further, from the last one to the first one. */
export function moveFocus(root: ParentNode, steps: number): void {
  const elements = focusable(root)
  const at = elements.findIndex((element) => element === document.activeElement)
  const next = at < 0 ? (steps > 0 ? 0 : -1) : (at + steps) % elements.length
  elements.at(next)?.focus()
}

/** Moves the slider, the choice or the tab that has the focus by some steps; returns false if something else has it. */
export function adjustFocused(steps: number): boolean {
  const { activeElement: element } = document
  if (element?.getAttribute('role') === 'tab') {
    const tabs = [...(element.parentElement?.querySelectorAll('button') ?? [])]
    const next = tabs.at((tabs.findIndex((tab) => tab === element) + steps) % tabs.length)
    next?.click()
    next?.focus()
    return true
  }
  if (element instanceof HTMLInputElement && element.type === 'range') {
    element.stepUp(steps)
    element.dispatchEvent(new Event('input'))
    return true
  }
  if (!(element instanceof HTMLSelectElement)) return false
  element.selectedIndex = Math.min(Math.max(element.selectedIndex + steps, 0), element.length - 1)
  element.dispatchEvent(new Event('change'))
  return true
}

/** Moves the focus to what is in a direction of the open circle of buttons, of which the first is at the top and the last in the middle. */
export function focusTowards(x: number, y: number): void {
  const around = [...document.querySelectorAll<HTMLElement>('dialog[open] .radial button')].slice(0, -1)
  const turns = Math.atan2(x, -y) / (2 * Math.PI) // clockwise from the top, -0.5 to 0.5
  around.at(Math.round(turns * around.length) % around.length)?.focus()
}
