// Codes by which a player's key moves to another device: the key and the name, encrypted with a passphrase.

import { xchacha20poly1305 } from '@noble/ciphers/chacha.js'
import { scryptAsync } from '@noble/hashes/scrypt.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { laterTexts } from '../text/later-texts'
import { isName } from './protocol'

export const MIN_PASSPHRASE = 8
const VERSION = 1
const SALT_BYTES = 16
const NONCE_BYTES = 24
const SECRET_BYTES = 32
/** About a tenth of a second and 32 MiB, for each guess. */
const COST = { N: 2 ** 15, r: 8, p: 1, dkLen: 32 }
const HASH = '#key='

export interface TransferredKey {
  secret: Uint8Array
  name: string
}

/** Returns a code that only the passphrase opens: version, salt, nonce and ciphertext, in base64url. */
export async function sealKey({ secret, name }: TransferredKey, passphrase: string): Promise<string> {
  const salt = crypto.getRandomValues(new Uint8Array(SALT_BYTES))
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES))
  const plain = new Uint8Array([...secret, ...utf8ToBytes(name)])
  const sealed = xchacha20poly1305(await derive(passphrase, salt), nonce).encrypt(plain)
  return toBase64url(new Uint8Array([VERSION, ...salt, ...nonce, ...sealed]))
}

/** Opens a code, or a link that contains one. Throws an error for the player if that is not possible. */
export async function openKey(text: string, passphrase: string): Promise<TransferredKey> {
  const bytes = fromBase64url(codeIn(text) ?? text.trim())
  if (!bytes || bytes[0] !== VERSION || bytes.length < 1 + SALT_BYTES + NONCE_BYTES + SECRET_BYTES) {
    throw new Error(laterTexts.key.invalid)
  }
  const salt = bytes.subarray(1, 1 + SALT_BYTES)
  const nonce = bytes.subarray(1 + SALT_BYTES, 1 + SALT_BYTES + NONCE_BYTES)
  const key = await derive(passphrase, salt)
  let plain: Uint8Array
  try {
    plain = xchacha20poly1305(key, nonce).decrypt(bytes.subarray(1 + SALT_BYTES + NONCE_BYTES))
  } catch {
    throw new Error(laterTexts.key.wrongPassphrase)
  }
  const name = new TextDecoder().decode(plain.subarray(SECRET_BYTES))
  return { secret: plain.slice(0, SECRET_BYTES), name: isName(name) ? name : '' }
}

/** Returns the link that brings a code to another device. Browsers do not send what follows the # to servers. */
export function keyLink(page: string, code: string): string {
  return page.replace(/#.*/, '') + HASH + code
}

/** Returns the code in a link, or null if it has none. */
export function codeIn(link: string): string | null {
  const at = link.indexOf(HASH)
  return at < 0 ? null : link.slice(at + HASH.length).trim()
}

function derive(passphrase: string, salt: Uint8Array): Promise<Uint8Array> {
  return scryptAsync(passphrase.normalize('NFKC'), salt, COST)
}

function toBase64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

function fromBase64url(text: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0))
  } catch {
    return null
  }
}
