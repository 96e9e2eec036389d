// What a player can do with a key, and the keys that do it. A key is KeyboardEvent.code, or '/' for whatever key types that; with
// Control (Command on a Mac), 'Control+' stands before it, or 'Control+Shift+'. Mouse0 is a button of the mouse, by MouseEvent.button;
// WheelUp and WheelDown are its wheel.

/** Each action with its first keys, in the order of the help. */
export const DEFAULTS = {
  forward: ['KeyW'],
  left: ['KeyA'],
  back: ['KeyS'],
  right: ['KeyD'],
  jump: ['Space'],
  sink: ['ShiftLeft', 'ShiftRight'],
  run: ['KeyR'],
  fly: ['KeyF'],
  break: ['KeyQ', 'Mouse0'],
  place: ['KeyX', 'Mouse2'],
  pick: ['KeyP', 'Mouse1'],
  previous: ['WheelUp'],
  next: ['WheelDown'],
  lookUp: ['ArrowUp'],
  lookDown: ['ArrowDown'],
  lookLeft: ['ArrowLeft'],
  lookRight: ['ArrowRight'],
  blocks: ['KeyE'],
  chat: ['KeyT', 'Enter'],
  command: ['/'],
  build: ['KeyB'],
  undo: ['Control+KeyZ'],
  redo: ['Control+KeyY', 'Control+Shift+KeyZ'],
  give: ['KeyG'],
  map: ['KeyM'],
  players: ['Tab'],
  claims: ['KeyC'],
  inspect: ['KeyI'],
  camera: ['KeyV'],
  zoom: ['KeyZ', 'KeyY'], // where keyboards differ
  hud: ['F1'],
  fullscreen: ['F11'],
  wave: ['KeyJ'],
  radial: ['KeyU'],
  mute: ['KeyN'],
  past: ['KeyL'],
  hints: ['KeyH'],
  debug: ['F3'],
  menu: ['Escape'],
} as const satisfies Record<string, readonly string[]>

export type Action = keyof typeof DEFAULTS
export type Bindings = Record<Action, readonly string[]>

export const ACTIONS = Object.keys(DEFAULTS) as Action[]

/** Returns what a key is in the bindings; withControl is whether it is pressed together with Control. */
export function codeOf(
  { key, code, ctrlKey, metaKey, shiftKey }: KeyboardEvent,
  withControl = ctrlKey || metaKey,
): string {
  if (key === '/') return key // wherever the layout has it
  if (!withControl || /^(Control|Meta)/.test(code)) return code
  const letter = /^[a-z]$/i.test(key) ? `Key${key.toUpperCase()}` : code // Ctrl+Z is where the layout has Z
  return `Control+${shiftKey ? 'Shift+' : ''}${letter}`
}

/** Returns the action of a key, or null. */
export function actionOf(bindings: Bindings, code: string): Action | null {
  return ACTIONS.find((action) => bindings[action].includes(code)) ?? null
}

/**
 * Returns the bindings with a key that does one action only: what it did before loses it, and the action its other keys; a mouse and a
 * keyboard have their own. Escape stays with the menu.
 */
export function rebind(bindings: Bindings, action: Action, code: string): Bindings {
  if (code === 'Escape' || action === 'menu') return bindings
  const rest = ACTIONS.map((other) => [other, bindings[other].filter((key) => key !== code)] as const)
  const kept = bindings[action].filter((key) => key !== code && isMouse(key) !== isMouse(code))
  return { ...bindings, ...Object.fromEntries(rest), [action]: [...kept, code] }
}

export function isMouse(code: string): boolean {
  return /^(Mouse|Wheel)/.test(code)
}

/** Returns stored bindings; actions that are missing or invalid get those of their default keys that no stored one has. */
export function bindingsFrom(stored: unknown): Bindings {
  const storedOf = (action: Action): readonly string[] | null => {
    const codes: unknown = (stored as Partial<Record<Action, unknown>> | null | undefined)?.[action]
    const valid = Array.isArray(codes) && codes.length <= 4 && codes.every((code) => typeof code === 'string')
    return valid && action !== 'menu' ? codes : null
  }
  const taken = new Set(ACTIONS.flatMap((action) => storedOf(action) ?? []))
  const withoutMouse = storedOf('next') === null // stored when the mouse could not be bound
  const of = (action: Action): readonly string[] => {
    const free: readonly string[] = DEFAULTS[action].filter((code) => !taken.has(code))
    const codes = storedOf(action)
    return codes ? [...codes, ...free.filter((code) => withoutMouse && isMouse(code))] : free
  }
  return Object.fromEntries(ACTIONS.map((action) => [action, of(action)])) as Bindings
}
