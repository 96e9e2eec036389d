// The texts in the language of the page, which stays the same until a reload.

import { preferredLanguage, type Language } from '../settings/language'
import { en, type Texts } from './en'
import type { LaterTexts } from './en-later'

interface Translation {
  texts: Texts
  laterTexts: LaterTexts
}

const LOAD: Record<Exclude<Language, 'en'>, () => Promise<Translation>> = {
  de: () => import('./de'),
  es: () => import('./es'),
}

/** In English until loadTexts is done. */
export const texts: Texts = { ...en }

export let language: Language = 'en'

/** Null in English. */
export let translation: Translation | null = null

/** Loads the texts in the language that the player has chosen, or in the one that their browser prefers. It is called before anything is shown. */
export async function loadTexts(chosen: Language | null): Promise<void> {
  const wanted = chosen ?? preferredLanguage(navigator.languages)
  if (wanted === 'en') return
  try {
    translation = await LOAD[wanted]()
    Object.assign(texts, translation.texts)
    document.documentElement.lang = language = wanted
  } catch (reason) {
    console.error(reason) // the page is of use in English, too
  }
}
