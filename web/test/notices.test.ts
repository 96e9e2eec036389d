import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import * as de from '../src/text/de'
import { en } from '../src/text/en'
import * as es from '../src/text/es'
import type { Notice } from '../src/text/notices'
import { templates as german } from '../src/text/notices-de'
import { templates as spanish } from '../src/text/notices-es'

/** What the server says: `go test ./web -run Codes -update` writes it. */
const codes = JSON.parse(readFileSync(join(import.meta.dirname, 'codes.json'), 'utf8')) as {
  failures: string[]
  refusals: string[]
  notices: Record<string, string>
  commands: Record<string, string>
  usages: string[]
  groups: string[]
}

/** The failures that only a page with a mistake meets. They are shown in the words of the server. */
const MISTAKES = [
  'bad_json',
  'bad_cbor',
  'too_long',
  'unknown_message',
  'unknown_field',
  'missing_field',
  'bad_type',
  'bad_value',
  'unexpected',
]

test.each([en, de.texts, es.texts])('every failure and refusal of the server has a text', (texts) => {
  expect(Object.keys(texts.failures).sort()).toEqual(codes.failures.filter((code) => !MISTAKES.includes(code)).sort())
  expect(Object.keys(texts.refusals).sort()).toEqual([...codes.refusals].sort())
})

/** Returns the placeholders of a template with their forms, but those of numbers: languages have other plurals. */
const placeholders = (template = '') => {
  const all = [...template.matchAll(/{(\w+)(:?[^}|]*)(\|?)/g)]
  return [...new Set(all.map(([, name, form, plural]) => (plural ? name : `${name}${form}`)))].sort()
}

describe.each([
  ['German', german],
  ['Spanish', spanish],
])('the notices in %s', (_, { notices, groups, commands, words }) => {
  test('are those of the server', () => {
    expect(Object.keys(notices).sort()).toEqual(Object.keys(codes.notices).sort())
    for (const [code, template] of Object.entries(codes.notices))
      expect(placeholders(notices[code]), code).toEqual(placeholders(template))
  })

  test('explain its commands', () => {
    expect(Object.keys(commands).sort()).toEqual(Object.keys(codes.commands).sort())
    expect(Object.keys(groups)).toEqual(codes.groups)
    const capitals = new Set(codes.usages.join(' ').match(/[A-Z]{2,}/g))
    expect(Object.keys(words).sort()).toEqual([...capitals, 'natural'].sort())
  })
})

describe('a notice', () => {
  afterEach(() => vi.unstubAllGlobals())

  /** Returns the module in a language. */
  async function inLanguage(language: 'en' | 'de' | 'es') {
    vi.stubGlobal('document', { documentElement: { lang: 'en' } })
    vi.resetModules()
    const { loadTexts } = await import('../src/text/texts')
    await loadTexts(language)
    const module = await import('../src/text/notices')
    await module.loadNotices()
    return { ...module, ...(await import('../src/text/notice-texts')) }
  }

  const banned: Notice = {
    text: 'You are banned from this world by an operator (1 hour 30 minutes left).',
    code: 'you_are_banned',
    args: { left: '5400000' },
    parts: { name: { text: 'an operator', code: 'an_operator' } },
  }

  test('is in English as the server sent it', async () => {
    const { noticeText, commandHelp, commandUsage } = await inLanguage('en')
    expect(noticeText(banned)).toBe(banned.text)
    expect(commandHelp({ name: 'who', help: 'list who plays' })).toBe('list who plays')
    expect(commandUsage('NAME [TIME]')).toBe('NAME [TIME]')
  })

  test('is in the language of the page, with its arguments and parts', async () => {
    const { noticeText, commandHelp, commandUsage, groupTitle } = await inLanguage('de')
    expect(noticeText(banned)).toBe(
      'Du wurdest in dieser Welt von einem Betreiber gesperrt (noch 1 Stunde 30 Minuten).',
    )
    const args = { name: 'eve', reason: 'Unfug [{name}]' }
    expect(noticeText({ text: '', code: 'you_are_banned', args })).toBe(
      'Du wurdest in dieser Welt von eve gesperrt: Unfug [{name}].',
    )
    const changed = { place: '1,2,3', ago: '10800000', name: 'eve', before: 'natural', after: 'Stone' }
    expect(noticeText({ text: '', code: 'changed_by', args: changed })).toBe(
      '1,2,3: vor 3 Stunden, eve: natürlich → Stein',
    )
    const progress = (all: string) =>
      noticeText({ text: '', code: 'rollback_progress', args: { id: '3', changed: '1', all } })
    expect([progress('1'), progress('2')]).toEqual(['Rücksetzung 3: 1 von 1 Block.', 'Rücksetzung 3: 1 von 2 Blöcken.'])
    expect(noticeText({ text: 'new', code: 'of_a_later_version' })).toBe('new')
    expect(noticeText({ text: '', code: 'usage', args: { command: 'mute', usage: 'NAME [TIME]' } })).toBe(
      'So geht es: /mute NAME [ZEIT]',
    )
    expect(commandHelp({ name: 'ban', help: '' })).toMatch(/^sperrt/)
    expect(commandUsage('X,Y,Z CLAIM build|enter')).toBe('X,Y,Z GRUNDSTÜCK build|enter')
    expect(groupTitle('talk')).toBe('Reden')
  })

  test('is a sentence, whoever it names', async () => {
    const { noticeText } = await inLanguage('es')
    expect(noticeText(banned)).toBe('Te ha vetado en este mundo un administrador (tiempo restante: 1 hora 30 minutos).')
  })

  test.each([
    ['0', '1 segundo'],
    ['1500', '2 segundos'],
    ['59001', '1 minuto'],
    ['129660000', '1 día 13 horas'],
    ['2592000000', '30 días'],
  ])('says how long %s ms are', async (length, want) => {
    const { noticeText } = await inLanguage('es')
    expect(noticeText({ text: '', code: 'floodban_bounds', args: { most: length } })).toBe(`Elige como máximo ${want}.`)
  })
})
