// The entry point: loads the settings and starts the game, or shows an error if the browser does not support it.

import { Game } from './game'
import { drawsInSoftware } from './render/view'
import { defaults, loadSettings } from './settings/settings'
import { installTestHook } from './testhook'

function start(): void {
  const canvas = document.querySelector<HTMLCanvasElement>('canvas#view')
  const hud = document.getElementById('hud')
  if (!canvas || !hud) throw new Error('index.html lacks #view or #hud')
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
    hud.textContent = 'Your browser doesn’t support WebGL 2. Try a current Chrome, Firefox or Safari.'
    hud.className = 'no-webgl'
  }
}

start()
