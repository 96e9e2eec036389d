import { describe, expect, test } from 'vitest'
import { codeIn, keyLink, openKey, sealKey } from '../src/net/key-transfer'

const SECRET = new Uint8Array(32).map((_, i) => i * 7)

describe('a key that moves to another device', () => {
  test('only the passphrase opens it, from a link or the code alone', async () => {
    const code = await sealKey({ secret: SECRET, name: 'ada' }, 'correct horse')
    const link = keyLink('https://voxels.example/?a=1#old', code)
    expect(link).toBe(`https://voxels.example/?a=1#key=${code}`)
    expect(codeIn(link)).toBe(code)
    expect(await openKey(` ${link}\n`, 'correct horse')).toEqual({ secret: SECRET, name: 'ada' })
    expect(await openKey(code, 'correct horse')).toEqual({ secret: SECRET, name: 'ada' })
    await expect(openKey(link, 'correct horsE')).rejects.toThrow('The passphrase is wrong')
    await expect(openKey(code.slice(0, -4), 'correct horse')).rejects.toThrow('The passphrase is wrong')
    const again = await sealKey({ secret: SECRET, name: 'ada' }, 'correct horse')
    expect(again).not.toBe(code)
  })

  test('anything else is no key', async () => {
    for (const text of ['', 'hello', 'https://voxels.example/', '#key=', '#key=%%%', '#key=' + 'A'.repeat(200)]) {
      await expect(openKey(text, 'correct horse')).rejects.toThrow('That is no key')
    }
    expect(codeIn('https://voxels.example/#map')).toBeNull()
  })

  test('a name that the world would refuse is left out', async () => {
    const code = await sealKey({ secret: SECRET, name: 'not a name!' }, 'correct horse')
    expect((await openKey(code, 'correct horse')).name).toBe('')
  })
})
