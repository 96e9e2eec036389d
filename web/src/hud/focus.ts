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
