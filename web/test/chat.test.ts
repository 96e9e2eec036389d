import { expect, test } from 'vitest'
import { partsOf, visitCommand } from '../src/hud/chat-text'
import { toggleIgnored } from '../src/game/chat-control'
import { MAX_IGNORED, defaults, loadSettings } from '../src/settings/settings'

const show = (text: string, name = 'ada') =>
  partsOf(text, name)
    .map(({ kind, text }) => (kind === 'text' ? text : `[${kind} ${text}]`))
    .join('')

test.each([
  ['see https://example.org/a?b=1#c, please', 'see [link https://example.org/a?b=1#c], please'],
  ['(http://example.org)', '([link http://example.org])'],
  ['https://a.b/ada is fine', '[link https://a.b/ada] is fine'],
  ['javascript:alert(1) data:text/html', 'javascript:alert(1) data:text/html'],
  ['at 12 64 -30!', 'at [place 12 64 -30]!'],
  ['at 12, 64, -30.', 'at [place 12, 64, -30].'],
  ['12,64,-30', '[place 12,64,-30]'],
  ['1 2 3.5 and 1.2.3 and 10 20', '1 2 3.5 and 1.2.3 and 10 20'],
  ['Ada, come! nevada adaline', '[name Ada], come! nevada adaline'],
  ['a < b & <img src=x onerror=alert(1)>', 'a < b & <img src=x onerror=alert(1)>'],
  ['', ''],
])('%s', (text, parts) => {
  expect(show(text)).toBe(parts)
})

test('nobody is named before they have joined', () => {
  expect(partsOf('hello', '')).toEqual([{ kind: 'text', text: 'hello' }])
})

test('a place becomes a command', () => {
  expect(visitCommand('12, 64, -30')).toBe('/visit 12 64 -30')
  expect(visitCommand('12 64 -30')).toBe('/visit 12 64 -30')
})

test('players are ignored, and no more, and that is kept', () => {
  const settings = defaults(false)
  expect(toggleIgnored(settings, '')).toContain('nobody')
  toggleIgnored(settings, 'Eve')
  toggleIgnored(settings, 'bob')
  expect(settings.ignored).toEqual(['eve', 'bob'])
  expect(toggleIgnored(settings, '?')).toContain('eve, bob')
  toggleIgnored(settings, 'EVE')
  expect(loadSettings({ getItem: () => JSON.stringify(settings) }, defaults(false)).ignored).toEqual(['bob'])
  for (let i = 0; i < MAX_IGNORED + 5; i++) toggleIgnored(settings, `p${i}`)
  expect(settings.ignored).toHaveLength(MAX_IGNORED)
  for (const broken of [1, ['a', 2], Array(MAX_IGNORED + 1).fill('x')])
    expect(loadSettings({ getItem: () => JSON.stringify({ ignored: broken }) }, defaults(false)).ignored).toEqual([])
})
