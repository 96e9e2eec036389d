// A real browser on two nodes with HTTPS: the page is compressed with brotli, and its policy allows sessions at both. Run as
// browser.test.mjs. It needs openssl for the certificate, and is skipped without.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Daemon } from './daemon.mjs'
import { Player } from './player.mjs'

const skip = spawnSync('openssl', ['version']).error ? 'openssl is not installed' : false

let directory
let daemon
let other
let ada

before(async () => {
  if (skip) return
  directory = await mkdtemp(join(tmpdir(), 'voxeld-e2e-'))
  const [key, certificate] = ['key.pem', 'cert.pem'].map((name) => join(directory, name))
  const { status, stderr } = spawnSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'].concat([
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=DNS:localhost',
      '-keyout',
      key,
      '-out',
      certificate,
    ]),
  )
  assert.equal(status, 0, stderr)
  const flags = ['--tls-cert', certificate, '--tls-key', key]
  daemon = await Daemon.start(null, flags)
  other = await Daemon.start(daemon, flags)
})

after(async () => {
  await ada?.close()
  await daemon?.remove()
  await other?.remove()
  if (directory) await rm(directory, { recursive: true })
})

test('the page and its scripts are small, and nothing violates its policy', { skip }, async () => {
  assert.match(daemon.url, /^https:\/\/localhost:/)
  ada = await Player.open(daemon.url, 'ada')
  await ada.until(() => window.__voxeld?.state().chunksMeshed > 0) // all scripts of the title screen and its land are here
  assert.ok(ada.received > 50_000 && ada.received < 100_000, `the page and its scripts took ${ada.received} bytes`)
  await ada.play() // which loads more
  await ada.until(() => navigator.serviceWorker.controller)
  assert.deepEqual(ada.troubles, [])
})

test('the node stops, and the player goes on at another one', { skip }, async () => {
  const { gateway } = await ada.state()
  ada.tilesFrom = [other.url]
  await daemon.drain()
  await ada.until(
    (gateway) => window.__voxeld.state().connected && window.__voxeld.state().gateway !== gateway,
    gateway,
  )
  assert.deepEqual(ada.troubles, [])
})
