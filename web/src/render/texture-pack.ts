// Texture packs: a zip with a picture for some of the tiles, tile_name.png in any folder, each of 16 × 16 or of 32 × 32 pixels. The names
// are those of gameserver/luanti/tiles. Packs of the player and of the world are kept in this browser, and read before anything is drawn.

import { inflate } from '../net/bytes'
import { COLOURS, TILES } from '../world/block-table'
import { TILE } from './pixels'
import { useTiles, type Tiles } from './tiles'

/** In bytes. */
export const MAX_ZIP = 4 << 20
const MAX_PICTURE = 128 << 10
const MAX_FILES = 2000
const EDGES = [TILE, 2 * TILE]
const DATABASE = 'voxeld.textures'
const OPEN_MS = 5000 // browsers may never answer
const KEYS = { pack: 'own', worldPack: 'world' }

/** Whose pack is kept, by the setting that names it: the player's or the world's. */
export type Kept = keyof typeof KEYS

/** Of the layers, in their order. */
export const TILE_NAMES: readonly string[] = [
  ...TILES,
  ...['wool', 'concrete', 'glass'].flatMap((of) =>
    COLOURS.map((colour) => `${colour.toLowerCase().replace(' ', '_')}_${of}`),
  ),
]

export type PackFault = 'tooLarge' | 'noZip' | 'noTiles' | 'badPicture'

/** A pack that cannot be used; what is the name of the file at fault, if it is one. */
export class PackError extends Error {
  constructor(
    readonly fault: PackFault,
    readonly what = '',
  ) {
    super(`read texture pack: ${fault} ${what}`)
  }
}

/** Reads a pack; decode returns the pixels of a PNG file. Throws a PackError. */
export async function readPack(
  zip: Uint8Array<ArrayBuffer>,
  decode: (png: Uint8Array<ArrayBuffer>, edge: number) => Promise<Uint8ClampedArray> = decodePNG,
): Promise<Tiles> {
  if (zip.length > MAX_ZIP) throw new PackError('tooLarge')
  const tiles: Tiles = { edge: TILE, pictures: new Map() }
  for (const { name, packed, deflated } of filesOf(zip)) {
    const layer = TILE_NAMES.indexOf(/([^/]+)\.png$/i.exec(name)?.[1]?.toLowerCase() ?? '')
    if (layer < 0) continue
    try {
      const png = (deflated ? await inflate(packed, MAX_PICTURE) : packed) as Uint8Array<ArrayBuffer>
      const edge = edgeOf(png)
      tiles.pictures.set(layer, { edge, pixels: await decode(png, edge) })
      tiles.edge = Math.max(tiles.edge, edge)
    } catch {
      throw new PackError('badPicture', name)
    }
  }
  if (tiles.pictures.size === 0) throw new PackError('noTiles')
  return tiles
}

interface File {
  name: string
  packed: Uint8Array<ArrayBuffer>
  deflated: boolean
}

/** Returns the files of a zip, by its central directory (APPNOTE.TXT, 4.3.12 and 4.3.16). */
function filesOf(zip: Uint8Array<ArrayBuffer>): File[] {
  const view = new DataView(zip.buffer, zip.byteOffset, zip.byteLength)
  try {
    let end = zip.length - 22
    while (view.getUint32(end, true) !== 0x06054b50) end-- // before it, getUint32 throws a RangeError
    const count = view.getUint16(end + 10, true)
    if (count > MAX_FILES) throw new PackError('tooLarge')
    const files: File[] = []
    let at = view.getUint32(end + 16, true)
    for (let i = 0; i < count; i++) {
      if (view.getUint32(at, true) !== 0x02014b50) throw new PackError('noZip')
      const [flags, method, size] = [
        view.getUint16(at + 8, true),
        view.getUint16(at + 10, true),
        view.getUint32(at + 20, true),
      ]
      const [nameLength, extra, comment] = [28, 30, 32].map((field) => view.getUint16(at + field, true)) as [
        number,
        number,
        number,
      ]
      const name = new TextDecoder().decode(zip.subarray(at + 46, at + 46 + nameLength))
      const local = view.getUint32(at + 42, true)
      const from = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true)
      if (flags & 1 || (method !== 0 && method !== 8) || from + size > zip.length) throw new PackError('noZip')
      files.push({ name, packed: zip.subarray(from, from + size), deflated: method === 8 })
      at += 46 + nameLength + extra + comment
    }
    return files
  } catch (reason) {
    throw reason instanceof PackError ? reason : new PackError('noZip')
  }
}

/** Returns the edge of a PNG file, by its header: a large one is not decoded. */
function edgeOf(png: Uint8Array<ArrayBuffer>): number {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength)
  const [width, height] = [view.getUint32(16), view.getUint32(20)]
  if (view.getUint32(0) !== 0x89504e47 || width !== height || !EDGES.includes(width)) throw new RangeError('not a tile')
  return width
}

async function decodePNG(png: Uint8Array<ArrayBuffer>, edge: number): Promise<Uint8ClampedArray> {
  const image = await createImageBitmap(new Blob([png], { type: 'image/png' }), { premultiplyAlpha: 'none' })
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = edge
  const context = canvas.getContext('2d')
  if (!context) throw new Error('no canvas')
  context.drawImage(image, 0, 0)
  return context.getImageData(0, 0, edge, edge).data
}

/** Keeps a pack for the next loads of the page, if it can be used; throws a PackError otherwise. */
export async function keepPack(zip: Uint8Array<ArrayBuffer>, as: Kept): Promise<void> {
  await readPack(zip)
  const packs = await store('readwrite')
  await answerOf(packs.put(zip, KEYS[as]))
}

/** Draws a pack that is kept from now on; called before anything is drawn. Returns false if it is not kept. */
export async function usePack(kept: Kept): Promise<boolean> {
  const packs = await store('readonly')
  const zip = await answerOf<Uint8Array<ArrayBuffer> | undefined>(packs.get(KEYS[kept]))
  if (zip) useTiles(await readPack(zip))
  return zip !== undefined
}

export async function dropPack(kept: Kept): Promise<void> {
  const packs = await store('readwrite')
  await answerOf(packs.delete(KEYS[kept]))
}

function store(mode: IDBTransactionMode): Promise<IDBObjectStore> {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('open the texture pack: no answer')), OPEN_MS)
    const request = indexedDB.open(DATABASE, 1)
    request.onupgradeneeded = () => request.result.createObjectStore('packs')
    request.onsuccess = () => resolve(request.result.transaction('packs', mode).objectStore('packs'))
    request.onerror = () => reject(request.error ?? new Error('open the texture pack: no reason'))
  })
}

function answerOf<T>(request: IDBRequest): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result as T)
    request.onerror = () => reject(request.error ?? new Error('the texture pack is not there'))
  })
}
