// The row of the menu in which the player chooses a texture pack, which takes effect with a reload.

import type { Settings } from '../settings/settings'
import { laterTexts } from '../text/later-texts'
import { texts as commonTexts } from '../text/texts'
import { button, el, show } from './dom'

const texts = laterTexts.menu

export function packRow(settings: Settings, changed: () => void): HTMLElement {
  const name = el('span', 'muted')
  const fault = el('small', 'error hidden')
  fault.setAttribute('role', 'alert')
  const reload = button(texts.reload, 'quiet hidden', () => location.reload())
  const file = el('input')
  file.type = 'file'
  file.accept = '.zip,application/zip'
  file.hidden = true
  file.setAttribute('aria-label', texts.textures)
  const remove = button(texts.removePack, 'quiet', () => {
    set('')
    void import('../render/texture-pack')
      .then(({ dropPack }) => dropPack('pack'))
      .catch((reason: unknown) => console.warn('texture pack', reason)) // it only takes up room
  })
  const showPack = () => {
    name.textContent = settings.pack || texts.noPack
    show(remove, settings.pack !== '')
  }
  const set = (pack: string) => {
    settings.pack = pack
    changed()
    showPack()
    show(fault, false)
    show(reload, true)
  }
  file.addEventListener('change', () => {
    const [chosen] = file.files ?? []
    file.value = '' // the same file can be chosen again
    if (!chosen) return
    void import('../render/texture-pack').then(
      (part) => keep(part, chosen),
      () => refuse(commonTexts.partMissing),
    )
  })
  const refuse = (why: string) => {
    fault.textContent = why
    show(fault, true)
  }
  const keep = async ({ MAX_ZIP, PackError, keepPack }: typeof import('../render/texture-pack'), chosen: File) => {
    try {
      if (chosen.size > MAX_ZIP) throw new PackError('tooLarge')
      await keepPack(new Uint8Array(await chosen.arrayBuffer()), 'pack')
      set(chosen.name)
    } catch (reason) {
      refuse(reason instanceof PackError ? texts.packFaults[reason.fault](reason.what) : texts.packNotKept)
    }
  }
  showPack()
  const choosing = button(texts.choosePack, 'quiet', () => file.click())
  return el('div', 'pack', el('span', '', texts.textures), name, choosing, remove, reload, file, fault)
}
