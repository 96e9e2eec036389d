// The entry point: makes the title screen of index.html work, and loads the game, which is most of the client.

import type { Game } from './game/game'
import { find } from './hud/dom'
import { Title, type JoinChoice } from './hud/title'
import { defaults, loadSettings } from './settings/settings'
import { storage } from './settings/storage'
import { loadTexts, texts } from './text/texts'

async function main(): Promise<void> {
  const settings = loadSettings(storage, defaults(false))
  await loadTexts(settings.language)
  const canvas = find(document, 'canvas')
  const hud = find(document, 'div', '#hud')
  canvas.setAttribute('aria-label', texts.page.world)
  const game: Promise<Game | null> = new URLSearchParams(location.search).has('bench')
    ? import('./bench/bench').then(({ runBench }) => runBench(canvas, hud).then(() => null))
    : import('./game/start').then(async ({ start }) => {
        try {
          return await start(title)
        } catch (reason) {
          console.error(reason)
          hud.textContent = texts.noWebGL
          hud.className = 'no-webgl'
          return null
        }
      })
  const title = new Title(
    find(document, 'main', '.title'),
    settings,
    (choice: JoinChoice) => void game.then((game) => game?.play(choice)),
    () => void game.then((game) => game?.bringKey()),
  )
  if ('unanswered' in document.documentElement.dataset) title.showError(texts.keepTrying) // see service-worker.ts
  game.catch((reason: unknown) => {
    console.error(reason)
    title.open(texts.gameMissing)
  })
}

void main()
