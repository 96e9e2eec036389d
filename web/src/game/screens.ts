// Decides which screen is shown: joins and leaves worlds, and opens and closes panels.

import { keysOf } from '../hud/help'
import type { Hud, Screen } from '../hud/hud'
import type { JoinChoice } from '../hud/title'
import type { Controls } from '../input/controls'
import { loadIdentity } from '../net/identity'
import type { Welcome } from '../net/protocol'
import type { Session } from '../net/session'
import type { Body } from '../player/body'
import type { View } from '../render/view'
import { storage } from '../settings/storage'
import { texts } from '../text/texts'
import { generateBackdrop } from '../world/backdrop'
import type { World } from '../world/world'
import type { QualityControl } from './quality-control'
import type { Store } from './store'

const BACKDROP_VIEW = 5

export class Screens {
  constructor(
    private readonly store: Store,
    private readonly world: World,
    private readonly body: Body,
    private readonly session: Session,
    private readonly controls: Controls,
    private readonly view: View,
    private readonly hud: Hud,
    private readonly quality: QualityControl,
  ) {}

  /** text is what the chat begins with. */
  show(screen: Screen, text = ''): void {
    this.store.screen = screen
    if (screen !== 'play') this.controls.release()
    this.hud.show(screen, text)
    this.view.showHand = screen !== 'title' && screen !== 'past' && !this.hud.hidden
    this.view.showAids = !this.hud.hidden
  }

  /** Hides all that is drawn over the world, or shows it again. */
  toggleHud(): void {
    this.hud.hidden = !this.hud.hidden
    if (this.hud.hidden) this.hud.messages.toast(keysOf(texts.hudHidden, this.store.settings.bindings))
    this.show(this.store.screen)
  }

  /** Leaves the world, if the player is in one. */
  showTitle(error: string | null): void {
    this.session.leave()
    this.hud.messages.setBanner(null)
    this.hud.hidden = false
    this.show('title')
    if (error) this.hud.title.open(error)
    this.view.setDistance(BACKDROP_VIEW)
    generateBackdrop(this.world)
  }

  play({ name, guest }: JoinChoice): void {
    this.store.settings.name = name
    this.store.settings.guest = guest
    this.store.save()
    this.hud.title.setJoining(true)
    this.session.join({
      name,
      view: this.quality.joining(),
      identity: guest ? null : loadIdentity(storage),
      skin: this.store.settings.skin,
    })
  }

  /** first is false after a reconnect; moved is true after a handoff, which is not shown. */
  joined(welcome: Welcome, first: boolean, moved: boolean): void {
    this.quality.joined(welcome)
    this.hud.messages.setBanner(null)
    this.hud.showStatus({ welcome })
    if (!first) {
      if (!moved) this.hud.messages.toast(texts.reconnected)
      return
    }
    this.body.flying = false
    this.hud.hotbar.clearGifts()
    this.hud.chat.addNotice(texts.welcome(welcome.name, welcome.world_name))
    void this.resume()
  }

  disconnected(reason: string): void {
    if (this.store.screen === 'title') this.hud.title.showError(reason)
    else this.hud.messages.setBanner(reason)
  }

  /** Returns to the world. The browser may refuse to lock the pointer, as it does right after Escape: then a click locks it. */
  async resume(): Promise<void> {
    this.show('play')
    const captured = await this.controls.capture()
    if (!captured && this.store.screen === 'play') this.hud.messages.toast(texts.clickToLook)
  }
}
