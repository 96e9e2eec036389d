// The cache of chunks in IndexedDB: their data and their entries are two stores, so that the entries are read without the data.

import type { CacheEntry, CacheStorage } from './chunk-cache'

const NAME = 'voxeld.chunks'
/** A database that is not open by then is not used: browsers may never answer. The page may be busy drawing for seconds. */
const OPEN_MS = 15_000

/** Returns the storage in this browser's IndexedDB. Its promises are rejected if it has none, or does not allow it. */
export function indexedDBStorage(): CacheStorage {
  const opened = open()
  opened.catch(() => undefined) // each use reports it
  return {
    async list() {
      const database = await opened
      return done<CacheEntry[]>(database.transaction('entries').objectStore('entries').getAll())
    },
    async read(hash) {
      const database = await opened
      return done<Uint8Array<ArrayBuffer> | undefined>(database.transaction('data').objectStore('data').get(hash))
    },
    async write(data, entries, removed) {
      const database = await opened
      const transaction = database.transaction(['data', 'entries'], 'readwrite')
      const stores = { data: transaction.objectStore('data'), entries: transaction.objectStore('entries') }
      for (const hash of removed) {
        stores.data.delete(hash)
        stores.entries.delete(hash)
      }
      for (const [hash, bytes] of data) stores.data.put(bytes, hash)
      for (const entry of entries) stores.entries.put(entry)
      await new Promise<void>((resolve, reject) => {
        transaction.oncomplete = () => resolve()
        transaction.onabort = () => reject(transaction.error ?? new Error('the transaction was aborted'))
      })
    },
  }
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('open the cache of chunks: no answer')), OPEN_MS)
    const request = indexedDB.open(NAME, 1)
    request.onupgradeneeded = () => {
      request.result.createObjectStore('data')
      request.result.createObjectStore('entries', { keyPath: 'hash' })
    }
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error ?? new Error('open the cache of chunks: no reason'))
  })
}

function done<T>(request: IDBRequest): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result as T)
    request.onerror = () => reject(request.error ?? new Error('read the cache of chunks: no reason'))
  })
}
