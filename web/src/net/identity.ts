// The player's Ed25519 key pair, created on the first visit and stored in this browser. Signing is done in JavaScript,
// because pages loaded over plain http have no crypto.subtle.

import { getPublicKey, hashes, sign, utils } from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'
import { fromHex, toHex } from './bytes'
import { bulkText, commandText, editText, proofText } from './protocol'

hashes.sha512 = sha512

const SECRET_BYTES = 32

export class Identity {
  /** The public key in hex, as in the join message. */
  readonly key: string

  constructor(private readonly secret: Uint8Array) {
    this.key = toHex(getPublicKey(secret))
  }

  /** Returns the signature that answers a challenge, in hex. */
  prove(nonce: string, world: string): string {
    return this.sign(proofText(nonce, world))
  }

  /** Returns the signature of a command, in hex. */
  signCommand(world: string, seq: number, name: string, text: string): string {
    return this.sign(commandText(world, seq, name, text))
  }

  /** Returns the signature of an edit, in hex. */
  signEdit(world: string, seq: number, x: number, y: number, z: number, block: number, text = ''): string {
    return this.sign(editText(world, seq, x, y, z, block, text))
  }

  /** Returns the signature of a bulk edit, in hex. */
  signBulk(world: string, seq: number, x: number, z: number, runs: string): string {
    return this.sign(bulkText(world, seq, x, z, runs))
  }

  private sign(text: string): string {
    return toHex(sign(new TextEncoder().encode(text), this.secret))
  }
}

type KeyStorage = Pick<Storage, 'getItem' | 'setItem'>

/** Under which the key is stored. */
export const KEY_ITEM = 'voxeld.key'

/** Loads the key from storage, or creates and stores one. */
export function loadIdentity(storage: KeyStorage): Identity {
  const stored = storedKey(storage)
  if (stored) return new Identity(stored)
  const secret = utils.randomSecretKey()
  storeKey(storage, secret)
  return new Identity(secret)
}

/** Returns the stored key, or null if there is none. */
export function storedKey(storage: Pick<Storage, 'getItem'>): Uint8Array | null {
  return fromHex(storage.getItem(KEY_ITEM) ?? '', SECRET_BYTES)
}

/** Stores a key, in the place of the one before. */
export function storeKey(storage: Pick<Storage, 'setItem'>, secret: Uint8Array): void {
  storage.setItem(KEY_ITEM, toHex(secret))
}
