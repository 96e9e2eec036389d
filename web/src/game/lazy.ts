// Parts of the game whose code is loaded when they are used first.

import type { Frame, System } from './frame-loop'

export class Lazy<T> {
  /** Null until it is loaded. */
  part: T | null = null
  private loading: Promise<T> | null = null

  constructor(
    private readonly load: () => Promise<T>,
    private readonly failed: () => void,
  ) {}

  /** Loads the part, and uses it as soon as it is loaded, in the order of these calls. */
  use(act: (part: T) => void = () => undefined): void {
    if (this.part) {
      act(this.part)
      return
    }
    this.loading ??= this.load().then((part) => (this.part = part))
    this.loading.then(act, () => {
      this.loading = null // the node may be back the next time
      this.failed()
    })
  }
}

export class LazySystem<T extends System> extends Lazy<T> implements System {
  update(frame: Frame): void {
    this.part?.update(frame)
  }
}
