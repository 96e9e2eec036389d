// The player's Ed25519 key pair, created on the first visit and stored in this browser. Signing is done in JavaScript,
// because pages loaded over plain http have no crypto.subtle.

import { getPublicKey, hashes, sign, utils } from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'
import { fromHex, toHex } from './bytes'
import { proofText } from './protocol'

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
    return toHex(sign(new TextEncoder().encode(proofText(nonce, world)), this.secret))
  }
}

/** Loads the key from storage, or creates and stores one. */
export function loadIdentity(storage: Pick<Storage, 'getItem' | 'setItem'>): Identity {
  const stored = fromHex(storage.getItem('voxeld.key') ?? '', SECRET_BYTES)
  if (stored) return new Identity(stored)
  const secret = utils.randomSecretKey()
  storage.setItem('voxeld.key', toHex(secret))
  return new Identity(secret)
}
