// The whole screen for the page.

import { isMouse, type Bindings } from '../settings/bindings'
import { SLOTS } from '../settings/settings'

const SLOT_KEYS = Array.from({ length: SLOTS }, (_, slot) => `Digit${slot + 1}`)

/** What only some browsers have (https://wicg.github.io/keyboard-lock/). */
interface KeyboardLock {
  lock(codes: string[]): Promise<void>
}

/** Fills the screen with the page, or stops that; a browser may refuse. Must be called from a click or key press. */
export async function toggleFullscreen(bindings: Bindings): Promise<void> {
  if (!document.fullscreenEnabled) return
  const { keyboard } = navigator as { keyboard?: KeyboardLock }
  try {
    if (document.fullscreenElement) await document.exitFullscreen()
    else {
      await document.documentElement.requestFullscreen({ navigationUI: 'hide' })
      await keyboard?.lock(lockedKeys(bindings))
    }
  } catch (reason) {
    console.warn('full screen', reason)
  }
}

/**
 * Returns the keys that the browser is to leave to the page: Escape then opens the menu, and Control with a key closes no tab. Not the
 * function keys, which end the full screen also where a panel is open.
 */
export function lockedKeys(bindings: Bindings): string[] {
  const codes = ['Escape', ...SLOT_KEYS, ...Object.values(bindings).flat()].map((code) => code.replace(/^.*\+/, ''))
  return [...new Set(codes)].filter((code) => /^[A-Z]\w+$/.test(code) && !/^F\d/.test(code) && !isMouse(code))
}
