// What the player chose, kept in this browser.

import { PLACEABLE } from './world/blocks'

export interface Settings {
  name: string
  guest: boolean
  /** Chunks in each direction, 2 to 12. */
  view: number
  /** Factor on the mouse, 0.2 to 3. */
  sensitivity: number
  /** Degrees, 50 to 110. */
  fieldOfView: number
  /** Pixels drawn for each of the screen's, 0.25 to 1. */
  renderScale: number
  smoothEdges: boolean
  /** Draw less while frames are slow (pace.ts). */
  adaptive: boolean
  sound: boolean
  /** Blocks on the nine places of the hotbar. */
  hotbar: number[]
}

/** [least, most, step] of the numbers. */
export const RANGES = {
  view: [2, 12, 1],
  sensitivity: [0.2, 3, 0.1],
  fieldOfView: [50, 110, 1],
  renderScale: [0.25, 1, 0.05],
} as const

const KEY = 'voxeld.settings'
const HOTBAR = [2, 1, 17, 16, 6, 18, 19, 20, 4] // grass, stone, cobblestone, planks, log, glass, brick, lamp, sand

export function defaults(software: boolean): Settings {
  return {
    name: '',
    guest: false,
    view: software ? 4 : 6,
    sensitivity: 1,
    fieldOfView: 75,
    renderScale: software ? 0.6 : 1,
    smoothEdges: !software,
    adaptive: true,
    sound: true,
    hotbar: [...HOTBAR],
  }
}

/** Reads the settings; anything missing or senseless becomes its default. */
export function loadSettings(storage: Pick<Storage, 'getItem'>, standard: Settings): Settings {
  let stored: Partial<Record<keyof Settings, unknown>> = {}
  try {
    const parsed: unknown = JSON.parse(storage.getItem(KEY) ?? '{}')
    if (typeof parsed === 'object' && parsed !== null) stored = parsed
  } catch {
    // not ours any more: start afresh
  }
  const number = (key: keyof typeof RANGES): number => {
    const value = stored[key]
    const [least, most] = RANGES[key]
    return typeof value === 'number' && value >= least && value <= most ? value : standard[key]
  }
  const flag = (key: 'guest' | 'smoothEdges' | 'adaptive' | 'sound'): boolean => {
    const value = stored[key]
    return typeof value === 'boolean' ? value : standard[key]
  }
  const { hotbar } = stored
  const goodHotbar = Array.isArray(hotbar) && hotbar.length === 9 && hotbar.every((block) => PLACEABLE.includes(block))
  return {
    name: typeof stored.name === 'string' ? stored.name : standard.name,
    guest: flag('guest'),
    view: Math.round(number('view')),
    sensitivity: number('sensitivity'),
    fieldOfView: number('fieldOfView'),
    renderScale: number('renderScale'),
    smoothEdges: flag('smoothEdges'),
    adaptive: flag('adaptive'),
    sound: flag('sound'),
    hotbar: goodHotbar ? hotbar : standard.hotbar,
  }
}

export function saveSettings(storage: Pick<Storage, 'setItem'>, settings: Settings): void {
  storage.setItem(KEY, JSON.stringify(settings))
}
