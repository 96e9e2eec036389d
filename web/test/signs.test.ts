import { expect, test } from 'vitest'
import { signText } from '../src/hud/sign-dialog'

test('a text that a sign cannot show is refused, not cut', () => {
  expect(signText('to the\r\nharbour')).toBe('to the\nharbour')
  expect(signText('a\tb\u0000\u202e\u2028\u2029c ')).toBe('a bc')
  expect(signText('one\ntwo\nthree\nfour\n \n')).toBe('one\ntwo\nthree\nfour')
  expect(signText('one\ntwo\nthree\nfour\nfive')).toBeNull()
  expect(signText('🌍'.repeat(20))).toBe('🌍'.repeat(20))
  expect(signText('🌍'.repeat(21))).toBeNull()
  expect(signText('\n\nlow')).toBe('\n\nlow')
  expect(signText(' \n \u200b\n')).toBe('')
})
