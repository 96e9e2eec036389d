import { expect, test } from 'vitest'
import { placeIn, placeLink, sharedPage } from '../src/net/place-link'

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

test.each([
  ['https://play.example/w/', 'http://10.0.0.7:8080', 'https://play.example/w/', 'everywhere'],
  ['http://192.168.1.9:8080/', 'http://10.0.0.7:8080', 'http://192.168.1.9:8080/', 'network'],
  ['http://192.168.1.9:8080/', 'https://play.example', 'https://play.example/', 'everywhere'],
  ['http://attic:8080/', '', 'http://attic:8080/', 'network'],
  ['http://attic.fritz.box:8080/', '', 'http://attic.fritz.box:8080/', 'network'],
  ['http://100.100.1.2:8080/', '', 'http://100.100.1.2:8080/', 'network'],
  ['http://0.0.0.0:8080/', '', 'http://0.0.0.0:8080/', 'machine'],
  ['http://localhost:8080/', 'javascript:alert(1)', 'http://localhost:8080/', 'machine'],
  ['http://localhost:8080/', 'http://192.168.1.9:8080', 'http://192.168.1.9:8080/', 'network'],
  ['http://127.0.0.1:8080/', 'https://play.example', 'https://play.example/', 'everywhere'],
  ['http://[::1]:8080/', 'http://[fd00::1]:8080', 'http://[fd00::1]:8080/', 'network'],
  ['http://localhost:8080/', 'http://127.0.0.1:8080', 'http://localhost:8080/', 'machine'],
  ['http://localhost:8080/', '', 'http://localhost:8080/', 'machine'],
  ['http://localhost:8080/', 'nonsense', 'http://localhost:8080/', 'machine'],
])('%s of a node at %s is shared as %s', (page, advertised, shared, reach) => {
  expect(sharedPage(page, advertised)).toEqual({ page: shared, reach })
})
