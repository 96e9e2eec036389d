// The entry point: loads the settings and starts the game, or shows an error if the browser does not support it.

import { startGame } from './game/game'
import { installTestHook } from './game/test-hook'
import { drawsInSoftware } from './render/view'
import { defaults, loadSettings } from './settings/settings'

function start(): void {
  const canvas = document.querySelector<HTMLCanvasElement>('canvas#view')
  const hud = document.getElementById('hud')
  if (!canvas || !hud) throw new Error('index.html lacks #view or #hud')
  const url = new URL('ws', location.href)
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'
  url.search = url.hash = ''
  if (new URLSearchParams(location.search).has('bench')) {
    void import('./bench/bench').then(({ runBench }) => runBench(canvas, hud, url.href))
    return
  }
  const settings = loadSettings(localStorage, defaults(drawsInSoftware()))
  try {
    installTestHook(startGame(canvas, hud, url.href, settings))
  } catch (reason) {
    console.error(reason)
    hud.textContent = 'Your browser doesn’t support WebGL 2. Try a current Chrome, Firefox or Safari.'
    hud.className = 'no-webgl'
  }
}

start()
