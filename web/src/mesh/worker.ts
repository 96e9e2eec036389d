// The meshing worker: runs jobs one at a time and keeps no state between them.

import { buffersOf, runJob, type MeshJob, type MeshResult } from './job'

const scope = self as unknown as {
  onmessage: ((event: MessageEvent<MeshJob>) => void) | null
  postMessage(result: MeshResult, transfer: Transferable[]): void
}

scope.onmessage = (event) => {
  const result = runJob(event.data)
  scope.postMessage(result, buffersOf(result))
}
