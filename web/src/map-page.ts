// The entry point of the public map.

import { find } from './hud/dom'
import { defaults, loadSettings } from './settings/settings'
import { storage } from './settings/storage'
import { loadTexts, texts } from './text/texts'

loadTexts(loadSettings(storage, defaults(false)).language)
  .then(() => import('./public-map'))
  .then(({ start }) => start())
  .catch((reason: unknown) => {
    console.error(reason)
    find(document, 'main').textContent = texts.mapMissing
  })
