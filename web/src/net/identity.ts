// The player's key: an Ed25519 key pair, made on the first visit and kept in this browser. Plain http on a LAN has no
// crypto.subtle, so signing is done in JavaScript.

import { getPublicKey, hashes, sign, utils } from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'
import { fromHex, toHex } from './bytes'
import { proofText } from './protocol'

hashes.sha512 = sha512

const SECRET_BYTES = 32

export class Identity {
  /** Public key in hex, as Join carries it. */
  readonly key: string

  constructor(private readonly secret: Uint8Array) {
    this.key = toHex(getPublicKey(secret))
  }

  /** The hex signature that answers a challenge. */
  prove(nonce: string, world: string): string {
    return toHex(sign(new TextEncoder().encode(proofText(nonce, world)), this.secret))
  }
}

/** Reads the key from storage, or makes one and stores it. */
export function loadIdentity(storage: Pick<Storage, 'getItem' | 'setItem'>): Identity {
  const stored = fromHex(storage.getItem('voxeld.key') ?? '', SECRET_BYTES)
  if (stored) return new Identity(stored)
  const secret = utils.randomSecretKey()
  storage.setItem('voxeld.key', toHex(secret))
  return new Identity(secret)
}
