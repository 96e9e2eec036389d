// What the server says, in the language of the page. Most of it is loaded after the page; until then it is in English.

import type { Notice } from './notice-templates'
import type * as Texts from './notice-texts'

export type { Notice }

let texts: typeof Texts | null = null
let loading: Promise<void> | null = null

/** Loads the templates. If they are missing, everything stays in English. */
export function loadNotices(): Promise<void> {
  loading ??= import('./notice-texts')
    .then(async (part) => {
      await part.loadTemplates()
      texts = part
    })
    .catch((reason: unknown) => console.error(reason))
  return loading
}

/** Returns what a notice says. */
export const noticeText = (notice: Notice) => texts?.noticeText(notice) ?? notice.text

/** Returns what a command does. */
export const commandHelp = (command: { name: string; help: string }) => texts?.commandHelp(command) ?? command.help

/** Returns the arguments of a command. */
export const commandUsage = (usage: string) => texts?.commandUsage(usage) ?? usage
