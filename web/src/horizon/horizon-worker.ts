// The worker that decodes tiles and makes their meshes, one at a time.

import { buildMesh, type Palette, type TileMesh } from './mesh'
import { decodeTile } from './tile'

export interface TileJob {
  id: number
  level: number
  bytes: Uint8Array
  palette: Palette
}

/** The mesh is null if the tile is invalid. */
export interface TileResult {
  id: number
  mesh: TileMesh | null
}

const scope = self as unknown as {
  onmessage: ((event: MessageEvent<TileJob>) => void) | null
  postMessage(result: TileResult, transfer: Transferable[]): void
}

scope.onmessage = ({ data: { id, level, bytes, palette } }) => {
  let mesh: TileMesh | null = null
  try {
    mesh = buildMesh(decodeTile(level, bytes), palette)
  } catch (reason) {
    console.warn('A surface tile is invalid:', reason)
  }
  const buffers = mesh ? [mesh.corners, mesh.colours, mesh.index, mesh.surface, mesh.normals].map((a) => a.buffer) : []
  scope.postMessage({ id, mesh }, buffers as ArrayBuffer[])
}
