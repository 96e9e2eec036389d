// The languages of the page.

/** What each language calls itself. */
export const LANGUAGES = { en: 'English', de: 'Deutsch', es: 'Español' } as const

export type Language = keyof typeof LANGUAGES

export function isLanguage(value: unknown): value is Language {
  return typeof value === 'string' && Object.hasOwn(LANGUAGES, value)
}

/** Returns the first language that the page has of those that a browser prefers, such as de-AT; English if there is none. */
export function preferredLanguage(tags: readonly string[]): Language {
  return tags.map((tag) => tag.replace(/-.*/, '').toLowerCase()).find(isLanguage) ?? 'en'
}
