import { expect, test } from 'vitest'
import { placeIn, placeLink } from '../src/net/place-link'

test('a link leads to the block in which its maker stands', () => {
  const link = placeLink('http://a/b/?c#1,2,3', { x: -0.5, y: 63.9995, z: 12.7 })
  expect(link).toBe('http://a/b/?c#-1,64,12')
  expect(placeIn(new URL(link).hash)).toEqual([-1, 64, 12])
})

test.each([
  '',
  '#',
  '#key=AAAA',
  '#1,2',
  '#1,2,3,4',
  '#1.5,2,3',
  '#1,-2,3',
  '#1,2,3 ',
  '#2147483648,1,1',
  '#99999999999,1,1',
  '#a,b,c',
])('%s is no place', (hash) => expect(placeIn(hash)).toBeNull())
