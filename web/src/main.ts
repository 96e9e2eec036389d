// The entry point: makes the title screen of index.html work, and loads the game, which is most of the client.

import { find } from './hud/dom'
import { Title, type JoinChoice } from './hud/title'
import { defaults, loadSettings } from './settings/settings'

const game = new URLSearchParams(location.search).has('bench')
  ? import('./bench/bench').then(({ runBench }) =>
      runBench(find(document, 'canvas'), find(document, 'div', '#hud')).then(() => null),
    )
  : import('./game/start').then(({ start }) => {
      try {
        return start(title)
      } catch (reason) {
        console.error(reason)
        const hud = find(document, 'div', '#hud')
        hud.textContent = 'Your browser doesn’t support WebGL 2. Try a current Chrome, Firefox or Safari.'
        hud.className = 'no-webgl'
        return null
      }
    })
const title = new Title(
  find(document, 'main', '.title'),
  loadSettings(localStorage, defaults(false)),
  (choice: JoinChoice) => void game.then((game) => game?.play(choice)),
  () => void game.then((game) => game?.bringKey()),
)
game.catch((reason: unknown) => {
  console.error(reason)
  title.open('The game could not be loaded. Check your connection and reload the page.')
})
