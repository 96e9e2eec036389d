// Applies the settings for quality, lowered while frames are slow.

import type { Hud } from '../hud/hud'
import type { MeshScheduler } from '../mesh/scheduler'
import { MAX_VIEW, type Welcome } from '../net/protocol'
import type { Session } from '../net/session'
import type { View } from '../render/view'
import { QualityGovernor, effectiveQuality } from '../settings/quality-governor'
import type { Frame, System } from './frame-loop'
import type { Store } from './store'

const EDIT_MESHES = 8 // sections meshed again after an edit in a corner

export class QualityControl implements System {
  private readonly governor = new QualityGovernor()
  private requestedView = 0 // chunks
  private joinedView = 0 // the view requested by the latest join

  constructor(
    private readonly store: Store,
    private readonly session: Session,
    private readonly meshes: MeshScheduler,
    private readonly view: View,
    private readonly hud: Pick<Hud, 'showStatus'>,
  ) {}

  update({ now }: Frame): void {
    // ignore frames while chunks are being meshed, since meshing takes CPU time from drawing; an edit causes few meshes
    if (!this.store.inWorld || this.meshes.backlog > EDIT_MESHES) this.governor.restart(now)
    else if (this.governor.countFrame(now) && this.store.settings.adaptive) this.apply()
  }

  /** Discards the time when the page was hidden, in which no frames are drawn. */
  restart(): void {
    this.governor.restart(performance.now())
  }

  /** Returns the view distance to join with. */
  joining(): number {
    this.requestedView = this.joinedView = this.effective.view
    return this.requestedView
  }

  joined(welcome: Welcome): void {
    this.joinedView = this.requestedView
    this.view.setDistance(welcome.view)
  }

  apply(): void {
    const { view, renderScale } = this.effective
    this.view.setScale(renderScale)
    this.hud.showStatus({ quality: { view, renderScale } })
    const { welcome } = this.session
    if (!welcome || view === this.requestedView) return
    // if the granted view was below the requested one, it is this world's maximum
    const max = welcome.view < this.joinedView ? welcome.view : MAX_VIEW
    this.requestedView = view
    this.session.connection.setView(view)
    this.view.setDistance(Math.min(view, max))
  }

  /** The view distance and resolution in effect. */
  private get effective() {
    return effectiveQuality(this.store.settings, this.governor.step)
  }
}
