// The player's settings, stored in this browser.

import { PLACEABLE } from '../world/blocks'
import { DEFAULTS, bindingsFrom, type Bindings } from './bindings'
import { isLanguage, type Language } from './language'

export interface Settings {
  name: string
  guest: boolean
  /** How the player has chosen to look (docs/protocol.md); 0 is no choice. */
  skin: number
  /** Null for the one that the browser prefers. */
  language: Language | null
  /** Chunks in each direction, 2 to 12. */
  view: number
  /** How far mouse, finger and stick turn the camera, a factor from 0.2 to 3. */
  sensitivity: number
  /** Up and down are exchanged when looking around. */
  invert: boolean
  bindings: Bindings
  /** Degrees, 50 to 110. */
  fieldOfView: number
  /** A factor on the light at night and in caves, 0.5 to 2. */
  brightness: number
  /** Pixels rendered per screen pixel, 0.25 to 1. */
  renderScale: number
  smoothEdges: boolean
  /** Draw the land beyond the view, up to 2 km. */
  horizon: boolean
  /** Lower the quality while frames are slow (quality-governor.ts). */
  adaptive: boolean
  sound: boolean
  /** Of all sounds, 0 to 1. */
  volume: number
  /** How loud the music is beside them, 0 to 1; 0 is none. */
  music: number
  /** Jump by oneself onto what is a block high. */
  autoJump: boolean
  /** Show what a newcomer tries first. */
  hints: boolean
  /** Rain and snow. */
  weather: boolean
  /** The file name of the texture pack that this browser keeps; '' for none. */
  pack: string
  /** The hash of the world's texture pack that this browser keeps; '' for none. */
  worldPack: string
  /** Show it, unless the player has chosen another one. */
  worldTextures: boolean
  /** Who reads what the player writes. */
  channel: Channel
  /** The names of players whose lines are not shown, in lower case; at most MAX_IGNORED. */
  ignored: string[]
  /** The blocks in the nine slots of the hotbar. */
  hotbar: number[]
}

/** Of the chat: players nearby, or all of the world. */
export type Channel = 'near' | 'world'

/** The most players who are ignored. */
export const MAX_IGNORED = 200

/** [min, max, step] of the numeric settings. */
export const RANGES = {
  view: [2, 12, 1],
  sensitivity: [0.2, 3, 0.1],
  fieldOfView: [50, 110, 1],
  brightness: [0.5, 2, 0.1],
  renderScale: [0.25, 1, 0.05],
  volume: [0, 1, 0.05],
  music: [0, 1, 0.05],
} as const

/** The number of slots of the hotbar. */
export const SLOTS = 9

const KEY = 'voxeld.settings'
const HOTBAR = [2, 1, 17, 16, 6, 18, 19, 20, 4] // grass, stone, cobblestone, planks, log, glass, brick, lamp, sand

/** Returns the settings of who has chosen none, on a device that draws in software, or that is touched. */
export function defaults(software: boolean, touch = false): Settings {
  return {
    name: '',
    guest: false,
    skin: 0,
    language: null,
    view: software ? 4 : 6,
    sensitivity: 1,
    invert: false,
    bindings: { ...DEFAULTS },
    fieldOfView: 75,
    brightness: 1,
    renderScale: software ? 0.6 : 1,
    smoothEdges: !software,
    horizon: true,
    adaptive: true,
    sound: true,
    volume: 0.7,
    music: 0,
    autoJump: touch,
    hints: true,
    weather: true,
    pack: '',
    worldPack: '',
    worldTextures: true,
    channel: 'world',
    ignored: [],
    hotbar: [...HOTBAR],
  }
}

/** Loads the settings; missing or invalid values get their defaults. */
export function loadSettings(storage: Pick<Storage, 'getItem'>, fallback: Settings): Settings {
  let stored: Partial<Record<keyof Settings, unknown>> = {}
  try {
    const parsed: unknown = JSON.parse(storage.getItem(KEY) ?? '{}')
    if (typeof parsed === 'object' && parsed !== null) stored = parsed
  } catch {
    // not valid JSON: use the defaults
  }
  const number = (key: keyof typeof RANGES): number => {
    const value = stored[key]
    const [min, max] = RANGES[key]
    return typeof value === 'number' && value >= min && value <= max ? value : fallback[key]
  }
  const text = (key: 'name' | 'pack' | 'worldPack'): string => {
    const value = stored[key]
    return typeof value === 'string' ? value : fallback[key]
  }
  const flag = (
    key:
      | 'guest'
      | 'invert'
      | 'smoothEdges'
      | 'horizon'
      | 'weather'
      | 'worldTextures'
      | 'adaptive'
      | 'sound'
      | 'autoJump'
      | 'hints',
  ): boolean => {
    const value = stored[key]
    return typeof value === 'boolean' ? value : fallback[key]
  }
  return {
    name: text('name'),
    guest: flag('guest'),
    skin: isSkin(stored.skin) ? stored.skin : fallback.skin,
    language: isLanguage(stored.language) ? stored.language : fallback.language,
    view: Math.round(number('view')),
    sensitivity: number('sensitivity'),
    invert: flag('invert'),
    bindings: bindingsFrom(stored.bindings),
    fieldOfView: number('fieldOfView'),
    brightness: number('brightness'),
    renderScale: number('renderScale'),
    smoothEdges: flag('smoothEdges'),
    horizon: flag('horizon'),
    adaptive: flag('adaptive'),
    sound: flag('sound'),
    volume: number('volume'),
    music: number('music'),
    autoJump: flag('autoJump'),
    hints: 'hints' in stored ? flag('hints') : typeof stored.name !== 'string', // whoever has a name is no newcomer
    weather: flag('weather'),
    pack: text('pack'),
    worldPack: text('worldPack'),
    worldTextures: flag('worldTextures'),
    channel: stored.channel === 'near' || stored.channel === 'world' ? stored.channel : fallback.channel,
    ignored: isNames(stored.ignored) ? stored.ignored : fallback.ignored,
    hotbar: isHotbar(stored.hotbar) ? stored.hotbar : fallback.hotbar,
  }
}

function isSkin(value: unknown): value is number {
  return typeof value === 'number' && value === value >>> 0
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= MAX_IGNORED && value.every((name) => typeof name === 'string')
}

function isHotbar(value: unknown): value is number[] {
  return Array.isArray(value) && value.length === SLOTS && value.every((block) => PLACEABLE.includes(block as number))
}

export function saveSettings(storage: Pick<Storage, 'setItem'>, settings: Settings): void {
  storage.setItem(KEY, JSON.stringify(settings))
}
