// What a player can do with a key, and the keys that do it. A key is KeyboardEvent.code, or '/' for whatever key types that.

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
  break: ['KeyQ'],
  place: ['KeyX'],
  pick: ['KeyP'],
  lookUp: ['ArrowUp'],
  lookDown: ['ArrowDown'],
  lookLeft: ['ArrowLeft'],
  lookRight: ['ArrowRight'],
  blocks: ['KeyE'],
  chat: ['KeyT', 'Enter'],
  command: ['/'],
  give: ['KeyG'],
  map: ['KeyM'],
  players: ['Tab'],
  claims: ['KeyC'],
  inspect: ['KeyI'],
  debug: ['F3'],
  menu: ['Escape'],
} as const satisfies Record<string, readonly string[]>

export type Action = keyof typeof DEFAULTS
export type Bindings = Record<Action, readonly string[]>

export const ACTIONS = Object.keys(DEFAULTS) as Action[]

/** Returns the action of a key, or null. */
export function actionOf(bindings: Bindings, code: string): Action | null {
  return ACTIONS.find((action) => bindings[action].includes(code)) ?? null
}
