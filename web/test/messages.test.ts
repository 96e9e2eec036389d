import { expect, test } from 'vitest'
import { correctionMessage, denialMessage, failureMessage, refusalMessage } from '../src/net/messages'
import { noticeText } from '../src/text/notices'
import { texts } from '../src/text/texts'

// A node chooses the codes: one that is the name of a property of every object is unknown, like any other.
test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])('the code %s has no text', (code) => {
  expect(denialMessage(code)).toBe(texts.refused(code))
  expect(refusalMessage(code)).toBe(texts.refused(code))
  expect(failureMessage({ type: 'failure', code, message: '' })).toBe(texts.closed(code))
  expect(correctionMessage(code)).toBeNull()
  expect(noticeText({ text: 'as sent', code })).toBe('as sent')
})
