// What a line of the chat shows of its text: links, places and the player's own name.

/** A part of a line: a plain text, a link, a place in the world, or the player's own name. */
export interface TextPart {
  kind: 'text' | 'link' | 'place' | 'name'
  text: string
}

const LINK = String.raw`https?:\/\/[^\s<>"']+[^\s<>"'.,;:!?)\]]`
const NUMBER = String.raw`-?\d{1,8}`
const PLACE = String.raw`(?<![\w.,-])${NUMBER}(?:, ?| )${NUMBER}(?:, ?| )${NUMBER}(?![\w-]|[.,]\d)`
const NAME = String.raw`(?<![\w-])[\w-]{1,20}(?![\w-])`
const PARTS = new RegExp(`(?<link>${LINK})|(?<place>${PLACE})|(?<name>${NAME})`, 'gu')

/** Returns the parts of a text, in order. name is the player's own. */
export function partsOf(text: string, name: string): TextPart[] {
  const parts: TextPart[] = []
  let end = 0
  const add = (kind: TextPart['kind'], text: string) => {
    if (text) parts.push({ kind, text })
  }
  for (const match of text.matchAll(PARTS)) {
    const kind = match.groups?.link ? 'link' : match.groups?.place ? 'place' : 'name'
    if (kind === 'name' && match[0].toLowerCase() !== name.toLowerCase()) continue
    add('text', text.slice(end, match.index))
    add(kind, match[0])
    end = match.index + match[0].length
  }
  add('text', text.slice(end))
  return parts
}

/** Returns the command that leads to a place of partsOf. */
export function visitCommand(place: string): string {
  return `/visit ${place.split(/, ?| /).join(' ')}`
}
