// The meshing worker: takes jobs one after the other, keeps nothing between them.

import { buffersOf, runJob, type MeshJob, type MeshResult } from './job'

const scope = self as unknown as {
  onmessage: ((event: MessageEvent<MeshJob>) => void) | null
  postMessage(result: MeshResult, transfer: Transferable[]): void
}

scope.onmessage = (event) => {
  const result = runJob(event.data)
  scope.postMessage(result, buffersOf(result))
}
