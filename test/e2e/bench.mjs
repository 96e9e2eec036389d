// Runs the benchmark page (web/src/bench) in Chromium against a daemon of its own, and prints the figures as rows of a table:
//
//   npm --prefix web run bench [-- VIEW [PART]]
//
// Chromium renders in software here, and shares the cores with the daemon.

import { Daemon, HILLS } from './daemon.mjs'
import { Player } from './player.mjs'

const view = Number(process.argv[2] ?? 6)
const only = process.argv[3] ?? ''
const daemon = await Daemon.start(null, [], HILLS)
try {
  const player = await Player.open(`${daemon.url}?bench&view=${view}&only=${only}`, 'bench', {
    settings: { renderScale: 0.5, horizon: true },
    device: { deviceScaleFactor: 1 },
    frameMs: 0,
  })
  try {
    let printed = 0
    let bench
    do {
      await player.until((printed) => window.__bench?.done || window.__bench?.rows.length > printed, printed)
      bench = await player.page.evaluate(() => window.__bench)
      for (const [measure, value] of bench.rows.slice(printed)) console.log(`| ${measure} | ${value} |`)
      printed = bench.rows.length
    } while (!bench.done)
    await player.screenshot('bench')
    for (const trouble of player.troubles) console.error(trouble)
    if (bench.error || player.troubles.length > 0) process.exitCode = 1
  } finally {
    await player.close()
  }
} finally {
  await daemon.remove()
}
