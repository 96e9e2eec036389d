// Starts the game on the elements of index.html, with the settings of this browser.

import { find } from '../hud/dom'
import type { Title } from '../hud/title'
import { gatewayOf } from '../net/endpoints'
import { drawsInSoftware } from '../render/view'
import { defaults, loadSettings } from '../settings/settings'
import { storage } from '../settings/storage'
import { startGame, type Game } from './game'
import { installTestHook } from './test-hook'

/** The promise is rejected if this browser cannot draw the world. */
export async function start(title: Title): Promise<Game> {
  const software = drawsInSoftware()
  document.documentElement.toggleAttribute('data-software', software) // see style.css
  const settings = loadSettings(storage, defaults(software, matchMedia('(pointer: coarse)').matches))
  const kept = settings.pack ? 'pack' : settings.worldTextures && settings.worldPack && 'worldPack'
  if (kept) {
    try {
      const { usePack } = await import('../render/texture-pack')
      if (!(await usePack(kept))) settings[kept] = '' // the browser has dropped it: the menu says that there is none
    } catch (reason) {
      console.warn('texture pack', reason) // the next load of the page may have it
    }
  }
  const game = startGame(find(document, 'canvas'), find(document, 'div', '#hud'), title, gatewayOf(location), settings)
  installTestHook(game.hook)
  return game
}
