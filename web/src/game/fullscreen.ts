// The whole screen for the page.

import type { Bindings } from '../settings/bindings'

/** What only some browsers have (https://wicg.github.io/keyboard-lock/). */
interface KeyboardLock {
  lock(codes: string[]): Promise<void>
}

/**
 * Fills the screen with the page, or stops that. Where the browser can leave them to the page, Escape then opens the menu, and Control
 * with a letter closes no tab. Must be called from a click or key press.
 */
export async function toggleFullscreen(bindings: Bindings): Promise<void> {
  if (document.fullscreenElement) return document.exitFullscreen()
  if (!document.fullscreenEnabled) return
  await document.documentElement.requestFullscreen({ navigationUI: 'hide' })
  const { keyboard } = navigator as { keyboard?: KeyboardLock }
  const letters = Object.values(bindings).flatMap((codes) => codes.filter((code) => /^(Key[A-Z]|Tab)$/.test(code)))
  await keyboard?.lock(['Escape', ...letters])
}
