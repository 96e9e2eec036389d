// Helpers to build DOM elements.

type Child = Node | string | null

/** Creates an element with a class and children. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = '',
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  if (className) element.className = className
  for (const child of children) if (child !== null) element.append(child)
  return element
}

/** Returns the first element of a tag within another one, or of those that a selector matches. Throws if there is none. */
export function find<K extends keyof HTMLElementTagNameMap>(
  parent: ParentNode,
  tag: K,
  selector = '',
): HTMLElementTagNameMap[K] {
  const element = parent.querySelector<HTMLElementTagNameMap[K]>(tag + selector)
  if (!element) throw new Error(`find ${tag}${selector}: the page has no such element`)
  return element
}

export function button(label: string, className: string, press: () => void): HTMLButtonElement {
  const element = el('button', className, label)
  element.type = 'button'
  element.addEventListener('click', press)
  return element
}

export function show(element: HTMLElement, visible: boolean): void {
  element.classList.toggle('hidden', !visible)
}

/** Runs the animation of a class from its start. */
export function restartAnimation(element: HTMLElement, className: string): void {
  element.classList.remove(className)
  element.getBoundingClientRect() // applies the removal
  element.classList.add(className)
}
