// What the player can do by a key, a button or a line of the chat.

import type { Controls } from '../input/controls'
import type { Action } from '../settings/bindings'
import { texts } from '../text/texts'
import type { Movement } from './movement'
import type { Panels } from './panels'
import type { Core, Parts } from './parts'

/** What a player says to wave, with a key or in the chat. */
export const WAVE = 'o/'
const WAVE_MS = 2000

type ActionCore = Pick<Core, 'store' | 'session' | 'hotbar' | 'screens' | 'hud' | 'partMissing'> & {
  controls: Controls
  movement: Movement
  panels: Panels
  settingsChanged: () => void
}

export class Actions {
  private wavedAt = -WAVE_MS
  /** Those that controls.ts does not do itself, and that are not only held. */
  private readonly acts: Partial<Record<Action, () => void>>

  constructor(
    private readonly core: ActionCore,
    private readonly parts: Parts,
  ) {
    const { store, screens, hud, controls, movement, panels } = core
    const { settings } = store
    const { build, claims, players, thirdPerson } = parts
    this.acts = {
      menu: () => {
        if (build.part?.cancel()) void screens.resume()
        else screens.show('menu')
      },
      blocks: () => screens.show('blocks'),
      chat: () => screens.show('chat'),
      command: () => screens.show('chat', '/'),
      give: () => {
        const many = controls.performs('sink')
        players.use((part) => part.give(many))
      },
      fly: () => movement.toggleFlying(),
      map: () => void panels.openMap(),
      claims: () => claims.use((part) => part.toggleFar()),
      inspect: () => this.command('inspect'),
      past: () => this.openPast(),
      build: () => build.use((part) => part.openPanel()),
      undo: () => build.use((part) => part.undo()),
      redo: () => build.use((part) => part.redo()),
      camera: () => thirdPerson.use((part) => part.next()),
      wave: () => this.wave(),
      radial: () => screens.show('radial'),
      mute: () => {
        settings.sound = !settings.sound
        hud.messages.toast(settings.sound ? texts.soundsOn : texts.soundsOff)
        core.settingsChanged()
      },
      hints: () => {
        settings.hints = !settings.hints
        core.settingsChanged()
      },
      debug: () => void panels.toggleDebug(),
      previous: () => this.scroll(-1),
      next: () => this.scroll(1),
      hud: () => screens.toggleHud(),
      fullscreen: () =>
        void import('./fullscreen').then((part) => part.toggleFullscreen(settings.bindings), core.partMissing),
    }
  }

  act(action: Action): void {
    this.acts[action]?.()
  }

  /** Carries out a command of the chat, without its slash; returns false if it cannot be sent now. */
  command(line: string): boolean {
    const { store, session } = this.core
    const { build, chat, claims, help, inspect } = this.parts
    if (line.toLowerCase() === 'inspect' && session.mayUse('inspect')) {
      build.part?.leaveTool()
      claims.part?.end()
      inspect.use((part) => part.toggle())
    } else if (line.startsWith('/')) build.use((part) => part.command(line.slice(1)))
    else if (line.toLowerCase() === 'past') this.openPast()
    else if (/^help\b/i.test(line)) {
      help.use((list) => {
        list.show(this.core.hud.chat.commands, line.slice('help'.length).trim().toLowerCase())
        if (store.inWorld) this.core.screens.show('help')
      })
    } else if (/^ignore\b/i.test(line)) {
      chat.use((part) => {
        part.toggleIgnored(line.slice('ignore'.length).trim())
        store.save()
      })
    } else if (/^claim\b/i.test(line)) {
      let sent = true
      claims.use((part) => {
        if (part.begin(line)) {
          build.part?.leaveTool()
          inspect.part?.stop()
        } else sent = session.sendCommand(line)
      })
      return sent
    } else if (/^me\s/i.test(line) && store.settings.channel === 'world') return session.sendChat(`/${line}`, 'world')
    else if (line) return session.sendCommand(chat.part?.resolve(line) ?? line)
    return true
  }

  private openPast(): void {
    this.parts.past.use((part) => part.open())
  }

  /** Moves what a building tool holds, or selects the slot some steps further. */
  private scroll(steps: number): void {
    const { hotbar, store } = this.core
    if (!this.parts.build.part?.scroll(steps)) hotbar.select(store.slotAfter(steps))
  }

  /** Reports whether clicks choose something, instead of changing blocks. */
  get choosing(): boolean {
    const { build, claims, inspect } = this.parts
    return Boolean(build.part?.active || inspect.part?.on || claims.part?.choosing)
  }

  /** Gives a click to the tool that is in use; returns false if none takes it. */
  click(button: number, now: number): boolean {
    const { build, claims, inspect } = this.parts
    return Boolean(build.part?.click(button) || claims.part?.click(button) || inspect.part?.click(button, now))
  }

  /** Reports whether the player may change a block. The node decides; until claims are loaded, only it. */
  mayEdit(x: number, y: number, z: number): boolean {
    return this.parts.claims.part?.mayEdit(x, y, z) ?? true
  }

  /** Waves, unless the player still does: who floods the chat is muted. */
  private wave(): void {
    if (performance.now() - this.wavedAt < WAVE_MS) return
    this.wavedAt = performance.now()
    this.core.session.sendChat(WAVE, 'near')
  }
}
