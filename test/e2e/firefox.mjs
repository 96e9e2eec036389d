// Debian's Firefox, driven by WebDriver BiDi. It has no WebGL without a screen: it draws on one in memory (Xvfb), in software.
// Playwright 1.65 sends emulation.setMediaFeaturesOverride, which Firefox ESR 153 does not know: web/package.json has 1.64.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'

const { firefox } = createRequire(new URL('../../web/package.json', import.meta.url))('playwright-core')

const PROGRAM = process.env.FIREFOX ?? '/usr/bin/firefox-esr'
const SCREEN = '1024x768x24'
const PREFERENCES = {
  'webgl.force-enabled': true, // in software too
  'webgl.enable-renderer-query': true,
  'media.autoplay.default': 0,
}

/** Returns what is missing to run Firefox here, '' if nothing is. */
export async function missingForFirefox() {
  const folders = process.env.PATH.split(delimiter)
  const screens = await Promise.allSettled(folders.map((folder) => access(join(folder, 'Xvfb'))))
  const program = await access(PROGRAM).catch(() => 'missing')
  const missing = []
  if (program) missing.push(`${PROGRAM} (Debian: firefox-esr)`)
  if (screens.every(({ status }) => status === 'rejected')) missing.push('Xvfb (Debian: xvfb)')
  return missing.join(' and ')
}

/** Starts Firefox on a screen of its own, which ends with it. */
export async function launchFirefox() {
  const screen = spawn('Xvfb', ['-displayfd', '1', '-screen', '0', SCREEN, '-nolisten', 'tcp'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    const [number] = await Promise.race([
      once(screen.stdout, 'data'),
      once(screen, 'exit').then(() => Promise.reject(new Error('Xvfb exited'))),
    ])
    const browser = await firefox.launch({
      channel: 'moz-firefox',
      executablePath: PROGRAM,
      headless: false,
      firefoxUserPrefs: PREFERENCES,
      env: { ...process.env, DISPLAY: `:${String(number).trim()}`, LIBGL_ALWAYS_SOFTWARE: '1' },
    })
    browser.on('disconnected', () => screen.kill())
    return browser
  } catch (reason) {
    screen.kill()
    throw reason
  }
}
