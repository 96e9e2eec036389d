import { expect, test } from 'vitest'
import { signText } from '../src/hud/sign-dialog'

test('a text is cut to what the server takes', () => {
  expect(signText('to the\r\nharbour')).toBe('to the\nharbour')
  expect(signText('a\tb\u0000\u202e\u2028\u2029c ')).toBe('a bc')
  expect(signText('one\ntwo\nthree\nfour\nfive')).toBe('one\ntwo\nthree\nfour')
  expect(signText('🌍'.repeat(30))).toBe('🌍'.repeat(20))
  expect(signText('\n\nlow')).toBe('\n\nlow')
  expect(signText(' \n \u200b\n')).toBe('')
})
