// Composes everything drawn over the world; the game decides which parts are shown.

import type { TransferredKey } from '../net/key-transfer'
import type { Action } from '../settings/bindings'
import { SLOTS, type Settings } from '../settings/settings'
import { texts } from '../text/texts'
import { Chat } from './chat'
import { ClaimLine } from './claim-line'
import { Debug } from './debug'
import { el, restartAnimation, show } from './dom'
import { Hotbar } from './hotbar'
import type { KeyDialog } from './key-dialog'
import type { SharedPage } from '../net/place-link'
import type { Menu, MenuStatus } from './menu'
import { Messages } from './messages'
import { Players } from './players'
import type { Title } from './title'

/** title: not in a world. play: the mouse turns the camera. The others release the mouse. */
export type Screen =
  'title' | 'play' | 'menu' | 'blocks' | 'chat' | 'rollback' | 'build' | 'map' | 'past' | 'sign' | 'help' | 'radial'

/** A panel that is shown on one screen. */
interface Panel {
  root: HTMLElement
  toggle(open: boolean): void
  /** Takes a key that is pressed while the panel is shown; returns false if it has no use for it. */
  key?(event: KeyboardEvent): boolean
}

export interface HudEvents {
  /** A part of the page could not be loaded. */
  partMissing: () => void
  resume: () => void
  chatClosed: () => void
  leave: () => void
  /** Returns how many edits are not acknowledged. */
  unsaved: () => number
  selectSlot: (slot: number) => void
  /** Puts a block into a slot of the hotbar, or into the selected one. */
  putBlock: (block: number, slot?: number) => void
  /** Returns false if a line of the chat cannot be sent now. */
  chat: (text: string) => boolean
  settingsChanged: () => void
  /** Goes back to the world, and does there what a key would. */
  perform: (action: Action) => void
  /** Returns the player's id. */
  player: () => string
  skinChosen: (skin: number) => void
  /** Returns how this page is shared with others. */
  shared: () => SharedPage
  /** Returns where the player stands. */
  place: () => { x: number; y: number; z: number }
  /** Returns the key of this browser, or null if it has none yet. */
  key: () => TransferredKey | null
  /** The key of another device is here. */
  keyImported: (key: TransferredKey) => void
}

export class Hud {
  readonly hotbar: Hotbar
  readonly chat: Chat
  readonly messages = new Messages()
  readonly claimLine = new ClaimLine()
  readonly debug = new Debug()
  readonly players = new Players()
  private menu: Menu | null = null // loaded when it is opened first
  private readonly status: MenuStatus
  private readonly dialogs = new Map<Screen, Panel>()
  private keyDialog: KeyDialog | null = null
  private readonly inWorld: HTMLElement
  private readonly hitFlash = el('div', 'hit-flash')
  /** Only messages are drawn over the world. */
  hidden = false

  constructor(
    private readonly root: HTMLElement,
    readonly title: Title,
    private readonly settings: Settings,
    private readonly events: HudEvents,
  ) {
    this.hotbar = new Hotbar(SLOTS, events.selectSlot)
    this.status = { welcome: null, quality: settings }
    this.chat = new Chat({
      channel: () => settings.channel,
      switchChannel: () => {
        settings.channel = settings.channel === 'near' ? 'world' : 'near'
        events.settingsChanged()
      },
      send: events.chat,
      closed: events.chatClosed,
    })
    this.inWorld = el(
      'div',
      'hidden',
      this.hitFlash,
      el('div', 'crosshair'),
      this.claimLine.root,
      this.hotbar.root,
      this.chat.root,
      this.players.root,
    )
    root.prepend(this.inWorld, this.debug.root) // below the title
    root.append(this.messages.root)
    if (location.hash.startsWith('#key=')) this.openKeyDialog((dialog) => dialog.openFromAddress())
  }

  /** Opens the dialog that takes over the key of another device. */
  openKeyImport(): void {
    this.openKeyDialog((dialog) => dialog.openImport(''))
  }

  /** Opens the dialog for keys, which is loaded when it is needed first. */
  private openKeyDialog(open: (dialog: KeyDialog) => void): void {
    this.loadOver(import('./key-dialog'), ({ KeyDialog }) => {
      this.keyDialog ??= new KeyDialog(this.root, {
        key: this.events.key,
        shared: this.events.shared,
        imported: (key) => {
          this.events.keyImported(key)
          this.title.setName(key.name)
          this.messages.toast(texts.keyImported)
        },
      })
      open(this.keyDialog)
    })
  }

  /** Loads a dialog, and opens it unless another screen or dialog has been opened meanwhile. */
  private loadOver<Part>(part: Promise<Part>, open: (part: Part) => void): void {
    const shown = () => `${this.root.dataset.screen ?? 'title'} ${this.root.querySelectorAll('dialog[open]').length}`
    const before = shown()
    part.then((part) => {
      if (shown() === before) open(part)
    }, this.events.partMissing)
  }

  /** Adds a dialog that is open on a screen. */
  addDialog(screen: Screen, dialog: Panel): void {
    this.dialogs.set(screen, dialog)
    this.messages.root.before(dialog.root) // messages are above it
    dialog.toggle(this.root.dataset.screen === screen)
  }

  /** Loads and adds the dialog of a screen. */
  private load<Part>(screen: Screen, part: Promise<Part>, create: (part: Part) => Panel): void {
    part.then((part) => {
      if (!this.dialogs.has(screen)) this.addDialog(screen, create(part))
    }, this.events.partMissing)
  }

  private createMenu({ Menu }: typeof import('./menu')): Menu {
    const { root, events } = this
    this.menu = new Menu(this.settings, {
      ...events,
      takeKey: () => this.openKeyDialog((dialog) => dialog.openExport()),
      invite: () =>
        this.loadOver(import('./invite-dialog'), ({ showInvite }) => showInvite(root, events.shared(), events.place())),
      chooseSkin: () =>
        this.loadOver(import('./skin-dialog'), ({ showSkin }) =>
          showSkin(root, events.player(), this.settings.skin, events.skinChosen),
        ),
    })
    this.menu.showStatus(this.status)
    return this.menu
  }

  /** Gives a key to what is open; returns false if that has no use for it. */
  key(event: KeyboardEvent): boolean {
    const { screen } = this.root.dataset as { screen?: Screen }
    if (screen === 'chat') return this.chat.key(event)
    return (screen && this.dialogs.get(screen)?.key?.(event)) ?? false
  }

  /** Shows in the menu what has changed. */
  showStatus(status: Partial<MenuStatus>): void {
    Object.assign(this.status, status)
    this.menu?.showStatus(this.status)
  }

  /** Adds what is shown over the world. */
  addInWorld(root: HTMLElement): void {
    this.inWorld.append(root)
  }

  /** Flashes the edges of the screen: the player was hit. */
  flashHit(): void {
    restartAnimation(this.hitFlash, 'active')
  }

  /** text is what the chat begins with. */
  show(screen: Screen, text = ''): void {
    this.root.dataset.screen = screen
    this.root.classList.toggle('bare', this.hidden && screen === 'play')
    show(this.inWorld, screen !== 'title')
    const { events } = this
    if (screen === 'title') {
      this.title.showKeys(this.settings.bindings)
      this.title.open()
    } else this.title.close()
    for (const [of, dialog] of this.dialogs) dialog.toggle(of === screen)
    if (!this.dialogs.has(screen)) {
      if (screen === 'blocks')
        this.load(
          screen,
          import('./inventory'),
          ({ Inventory }) =>
            new Inventory({
              hotbar: this.hotbar.root,
              put: events.putBlock,
              select: events.selectSlot,
              close: events.resume,
            }),
        )
      if (screen === 'radial')
        this.load(screen, import('./radial-menu'), ({ RadialMenu }) => new RadialMenu(events.perform, events.resume))
      if (screen === 'menu') this.load(screen, import('./menu'), (part) => this.createMenu(part))
    }
    if (screen === 'chat') this.chat.focus(text)
    if (screen !== 'play') this.players.toggle(false)
    // at once: browsers take the focus from a hidden element with the next frame, and until then it receives the player's keys
    else if (document.activeElement instanceof HTMLElement) document.activeElement.blur()
  }
}
