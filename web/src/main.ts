// The page's beginning: settings, the game, and a word if this browser cannot show it.

import { Game } from './game'
import { drawsInSoftware } from './render/view'
import { defaults, loadSettings } from './settings'
import { installTestHook } from './testhook'

function start(): void {
  const canvas = document.getElementById('view') as HTMLCanvasElement
  const hud = document.getElementById('hud')!
  const url = new URL('ws', location.href)
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'
  url.search = url.hash = ''
  const settings = loadSettings(localStorage, defaults(drawsInSoftware()))
  try {
    const game = new Game(canvas, hud, url.href, settings)
    installTestHook({
      state: () => game.state(),
      blockAt: (x, y, z) => game.blockAt(x, y, z),
      lookAt: (x, y, z) => game.lookAt(x, y, z),
      aim: () => game.aim(),
    })
  } catch (reason) {
    console.error(reason)
    hud.textContent = 'This world needs WebGL 2, and this browser gave none. Another browser, or a newer one, will do.'
    hud.className = 'no-webgl'
  }
}

start()
