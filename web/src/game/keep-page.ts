// What is kept in this browser from visit to visit: registers the service worker, which keeps the page for when its node does not
// answer, and says if nothing else is kept.

import { storage } from '../settings/storage'
import { laterTexts } from '../text/later-texts'

/** say shows a text to the player. */
export function keepPage(say: (text: string) => void): void {
  if (!storage.lasts) say(laterTexts.notStored)
  if (import.meta.env.PROD && 'serviceWorker' in navigator)
    // not over http, except on this machine
    navigator.serviceWorker.register('./service-worker.js').catch((reason: unknown) => {
      console.warn('the page cannot be kept', reason) // as in private windows
    })
}
