import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { LANGUAGES, preferredLanguage } from '../src/settings/language'
import * as de from '../src/text/de'
import { en } from '../src/text/en'
import { enLater } from '../src/text/en-later'
import * as es from '../src/text/es'
import { KINDS, PLACEABLE, kindOf } from '../src/world/blocks'

const ENGLISH = { texts: en, laterTexts: enLater }
const ALL = { en: ENGLISH, de, es }

/** Returns all strings and functions of a language, by their paths. */
function entriesOf(value: unknown, path = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null) return new Map([[path, value]])
  return new Map(Object.entries(value).flatMap(([key, inner]) => [...entriesOf(inner, `${path}.${key}`)]))
}

/** The words in braces of a text, which the page replaces. */
const bracesIn = (text: string) => (text.match(/{\w+}/g) ?? []).sort()

/** These take names, and not what they show. */
const NAMED = /\.(key|block|group)$/

describe.each(['de', 'es'] as const)('the texts in %s', (language) => {
  const english = entriesOf(ENGLISH)
  const entries = entriesOf({ texts: ALL[language].texts, laterTexts: ALL[language].laterTexts })

  test('are those in English', () => {
    expect([...entries.keys()].sort()).toEqual([...english.keys()].sort())
  })

  test('have what the page puts into them', () => {
    for (const [path, text] of entries) {
      const original = english.get(path)
      if (typeof text === 'string') {
        expect(text.trim(), path).not.toBe('')
        expect(bracesIn(text), path).toEqual(bracesIn(original as string))
      } else if (!NAMED.test(path)) {
        const shownBy = (of: unknown, values: unknown[]) => {
          const shown = (of as (...values: unknown[]) => string)(...values)
          expect(shown, path).not.toMatch(/undefined|null|NaN|object/)
          return values.filter((value) => shown.includes(String(value)))
        }
        for (const values of [
          [41, 42, 43],
          [1, 42, 43],
        ])
          expect(shownBy(text, values), path).toEqual(shownBy(original, values))
        shownBy(text, ['', '', ''])
        if (/inClaim|membersOnly|claimEntered|claimLeft|overlaps/.test(path)) shownBy(text, [null, 'name']) // the player's own
      }
    }
  })

  test('name all blocks and groups, each by another name', () => {
    const { block } = ALL[language].texts
    const names = PLACEABLE.map((id) => block(kindOf(id).name))
    expect(new Set(names).size).toBe(PLACEABLE.length)
    expect(names.filter((name) => /undefined|wool|concrete|glass/.test(name))).toEqual([])
    for (const { group } of KINDS) expect(ALL[language].laterTexts.group(group), group).not.toBe(group || null)
  })

  test('name all keys', () => {
    const { key } = ALL[language].texts
    const codes = ['KeyW', 'Control+KeyZ', 'ShiftLeft', 'ArrowUp', 'Space', 'Escape', 'F3', '/']
    expect(codes.map(key)).toEqual({ de: GERMAN_KEYS, es: SPANISH_KEYS }[language])
  })
})

const GERMAN_KEYS = ['W', 'Strg+Z', 'Umschalt links', 'Pfeil hoch', 'Leertaste', 'Esc', 'F3', '/']
const SPANISH_KEYS = ['W', 'Ctrl+Z', 'Mayús izquierda', 'Flecha arriba', 'Espacio', 'Esc', 'F3', '/']

test('coloured blocks agree with their colours', () => {
  expect(['Light grey wool', 'Red concrete', 'Pink glass'].map(de.texts.block)).toEqual([
    'Hellgraue Wolle',
    'Roter Beton',
    'Rosafarbenes Glas',
  ])
  expect(['Red wool', 'Red concrete', 'Glass'].map(es.texts.block)).toEqual(['Lana roja', 'Hormigón rojo', 'Cristal'])
})

test('index.html has the English texts', () => {
  const page = readFileSync(join(import.meta.dirname, '../index.html'), 'utf8')
  const marked = [...page.matchAll(/data-text="(\w+)">([^<]*)</g)].map(([, key = '', text]) => [key, text])
  expect(marked.map(([key]) => key)).toEqual(['motto', 'guest', 'bringKey'])
  for (const [key, text] of marked) expect(text).toBe(en.page[key as keyof typeof en.page])
  for (const text of [`aria-label="${en.page.world}"`, `placeholder="${en.page.name}"`, `>${en.page.play}</button>`])
    expect(page).toContain(text)
})

describe('the language', () => {
  afterEach(() => vi.unstubAllGlobals())

  test('is the first that the page has of those that the browser prefers', () => {
    expect(preferredLanguage(['fr-FR', 'de-AT', 'en'])).toBe('de')
    expect(preferredLanguage(['ES-mx'])).toBe('es')
    expect(preferredLanguage(['eng', 'toString'])).toBe('en')
    expect(preferredLanguage([])).toBe('en')
    expect(Object.keys(LANGUAGES)).toEqual(Object.keys(ALL))
  })

  test('is that of all texts after loadTexts', async () => {
    const documentElement = { lang: 'en' }
    vi.stubGlobal('document', { documentElement })
    vi.stubGlobal('navigator', { languages: ['es'] })
    vi.resetModules()
    const { loadTexts, texts } = await import('../src/text/texts')
    await loadTexts('en')
    expect([texts.page.play, documentElement.lang]).toEqual(['Play', 'en'])
    await loadTexts(null)
    expect([texts.page.play, documentElement.lang]).toEqual(['Jugar', 'es'])
    await loadTexts('de')
    const { laterTexts } = await import('../src/text/later-texts')
    expect([texts.page.play, documentElement.lang]).toEqual(['Spielen', 'de'])
    expect(laterTexts.close).toBe('Schließen')
  })
})
