// Keeps the texture pack of the world for the next loads of the page. It is loaded after the player has joined, if it has changed.

import { sha256 } from '@noble/hashes/sha2.js'
import type { Messages } from '../hud/messages'
import { fromBase64, toHex } from '../net/bytes'
import { surfaceOf } from '../net/endpoints'
import { dropPack, keepPack } from '../render/texture-pack'
import { laterTexts } from '../text/later-texts'
import type { Store } from './store'

/** Keeps the pack with a hash, from the gateway with a WebSocket; '' for none. */
export async function keepWorldTextures(
  hash: string,
  socket: string,
  store: Store,
  messages: Pick<Messages, 'toast'>,
): Promise<void> {
  const { settings } = store
  try {
    if (hash) {
      const answer = await fetch(new URL(`textures/${hash}`, surfaceOf(socket)))
      if (!answer.ok) return // the gateway does not have it yet
      const pack = new Uint8Array(await answer.arrayBuffer())
      if (toHex(sha256(pack)) !== toHex(fromBase64(hash.replaceAll('-', '+').replaceAll('_', '/'))))
        throw new Error('they have another hash')
      await keepPack(pack, 'worldPack')
    } else {
      await dropPack('worldPack')
    }
    settings.worldPack = hash
    store.save()
    if (!settings.pack) messages.toast(laterTexts.newTextures)
  } catch (reason) {
    console.warn('The textures of the world cannot be kept:', reason)
  }
}
