// Everything over the world, put together; the game decides which parts are shown.

import type { Settings } from '../settings'
import { Chat } from './chat'
import { Debug } from './debug'
import { el, show } from './dom'
import { Hotbar } from './hotbar'
import { Inventory } from './inventory'
import { Menu } from './menu'
import { Messages } from './messages'
import { Players } from './players'
import { Title, type Who } from './title'
import './style.css'

/** title: not in a world. play: the mouse turns. The others free the mouse. */
export type Screen = 'title' | 'play' | 'menu' | 'blocks' | 'chat'

export interface HudEvents {
  play(who: Who): void
  resume(): void
  leave(): void
  choose(slot: number): void
  take(block: number): void
  say(text: string): void
  settingsChanged(): void
}

export class Hud {
  readonly title: Title
  readonly hotbar: Hotbar
  readonly chat: Chat
  readonly messages = new Messages()
  readonly debug = new Debug()
  readonly players = new Players()
  readonly menu: Menu
  private readonly inventory: Inventory
  private readonly inWorld: HTMLElement
  private readonly pain = el('div', 'ouch')

  constructor(root: HTMLElement, settings: Settings, events: HudEvents) {
    this.title = new Title({ name: settings.name, guest: settings.guest }, events.play)
    this.hotbar = new Hotbar(events.choose)
    this.inventory = new Inventory(events.take, events.resume)
    this.menu = new Menu(settings, events.settingsChanged, events.resume, events.leave)
    this.chat = new Chat(events.say, events.resume)
    this.inWorld = el('div', 'hidden', this.pain, el('div', 'crosshair'), this.hotbar.root, this.chat.root, this.players.root)
    root.append(
      this.inWorld,
      this.debug.root,
      this.title.root,
      this.inventory.root,
      this.menu.root,
      this.messages.root,
    )
  }

  /** The player was hit: the screen's edges flush. */
  ouch(): void {
    this.pain.classList.remove('felt')
    void this.pain.offsetWidth // begins the animation anew
    this.pain.classList.add('felt')
  }

  screen(screen: Screen): void {
    show(this.inWorld, screen !== 'title')
    if (screen === 'title') this.title.open()
    else this.title.close()
    this.menu.toggle(screen === 'menu')
    this.inventory.toggle(screen === 'blocks')
    if (screen === 'chat') this.chat.begin()
    if (screen !== 'play') this.players.toggle(false)
  }
}
