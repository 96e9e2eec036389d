// The templates of what the server says, in the language of the page. The server sends a text in English and, if it has one,
// the code and the arguments of its template (package wire/notice); test/codes.json lists all. In English the text is shown
// as it is.

import type { Notice, Templates } from './notice-templates'
import { language, texts } from './texts'

/** In English only what the page says in other words. */
let templates: Templates = {
  notices: {
    nobody_near: 'Nobody is near enough to read that. The button in the chat switches to the whole world.',
    land_last_confirmed:
      'The land here cannot be confirmed at the moment: newer changes may be missing. It was last confirmed at {time:time}.',
  },
  groups: {
    talk: 'Talk',
    move: 'Travel',
    build: 'Build',
    land: 'Names and claims',
    moderation: 'Moderation',
    admin: 'Administration',
  },
  commands: {},
  words: {},
}

/** Loads those of the language of the page. */
export async function loadTemplates(): Promise<void> {
  if (language === 'de') templates = (await import('./notices-de')).templates
  if (language === 'es') templates = (await import('./notices-es')).templates
}

/** Returns what a notice says. */
export function noticeText({ text, code = '', args = {}, parts = {} }: Notice): string {
  const template = own(templates.notices, code)
  if (template === undefined) return text
  const value = (name: string): string => {
    const part = own(parts, name)
    return part ? noticeText(part) : (own(args, name) ?? '')
  }
  return template
    .replace(/\[([^\]]*)\]/g, (_, part: string) =>
      [...part.matchAll(/{(\w+)/g)].every(([, name = '']) => value(name)) ? part : '',
    )
    .replace(/{(\w+):?([^}]*)}/g, (_, name: string, form: string) => show(value(name), form))
}

/** Returns what a command does. */
export function commandHelp({ name, help }: { name: string; help: string }): string {
  return own(templates.commands, name) ?? help
}

/** Returns the arguments of a command. */
export function commandUsage(usage: string): string {
  return usage.replace(/[A-Z]{2,}/g, (word) => own(templates.words, word) ?? word)
}

/** Returns the title of a group of commands. */
export function groupTitle(group: string): string {
  return own(templates.groups, group) ?? group
}

function show(value: string, form: string): string {
  const [one = '', many] = form.split('|')
  if (many !== undefined) return value === '1' ? one : many
  switch (form) {
    case 'duration':
      return duration(Number(value))
    case 'ago':
      return ago(Number(value))
    case 'time':
      return new Date(Number(value)).toLocaleTimeString(language, { timeStyle: 'medium' })
    case 'block':
      return own(templates.words, value) ?? texts.block(value)
    case 'usage':
      return commandUsage(value)
  }
  return value
}

/** Lengths in seconds. */
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const

/** Returns a length of time in its two largest units, rounded up. */
function duration(ms: number): string {
  let seconds = Math.max(1, Math.ceil(ms / 1000))
  const first = UNITS.findIndex(([, size]) => seconds >= size)
  const smallest = UNITS[Math.min(first + 1, UNITS.length - 1)]?.[1] ?? 1
  seconds = Math.ceil(seconds / smallest) * smallest
  return UNITS.slice(Math.max(0, first - 1), first + 2)
    .map(([unit, size]) => {
      const count = Math.floor(seconds / size)
      seconds -= count * size
      return count && new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' }).format(count)
    })
    .filter(Boolean)
    .join(' ')
}

/** Returns how long ago something was. */
function ago(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? (['second', 1] as const)
  return new Intl.RelativeTimeFormat(language).format(-Math.floor(seconds / size), unit)
}

function own<T>(of: Partial<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(of, key) ? of[key] : undefined
}
