// Players whose lines the player does not want to read. They are kept with the settings, on this device.

import { isName } from '../net/protocol'
import { MAX_IGNORED, type Settings } from '../settings/settings'
import { texts } from '../text/texts'

/** Ignores a player, or ends that; returns what the player is told. Without a name, that is whom they ignore. */
export function toggleIgnored(settings: Settings, name: string): string {
  const key = name.toLowerCase()
  const before = settings.ignored
  if (!isName(name)) return before.length === 0 ? texts.ignoringNobody : texts.ignoring(before.join(', '))
  if (before.includes(key)) {
    settings.ignored = before.filter((other) => other !== key)
    return texts.notIgnored(name)
  }
  settings.ignored = [...before, key].slice(-MAX_IGNORED)
  return texts.ignored(name)
}
