// The meshing worker: holds a part of the land, and processes one message at a time.

import { LandMesher } from './land-mesher'
import { buffersOf, type Meshed, type ToWorker } from './messages'

const scope = self as unknown as {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null
  postMessage(answer: Meshed, transfer: Transferable[]): void
}
const mesher = new LandMesher()

scope.onmessage = ({ data }) => {
  let answer: Meshed | null
  try {
    answer = mesher.process(data)
  } catch (reason) {
    console.error('meshing failed', reason)
    answer = 'job' in data ? { job: data.job, sections: [], duration: 0 } : null // otherwise the worker would be sent no more jobs
  }
  if (answer) scope.postMessage(answer, buffersOf(answer))
}
