// A real browser on a daemon with HTTPS: the page is compressed with brotli, and the session is a wss one. Run as browser.test.mjs.
// It needs openssl for the certificate, and is skipped without.

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
  daemon = await Daemon.start(null, ['--tls-cert', certificate, '--tls-key', key])
})

after(async () => {
  await ada?.close()
  await daemon?.remove()
  if (directory) await rm(directory, { recursive: true })
})

test('the page and its scripts are small, and nothing violates its policy', { skip }, async () => {
  assert.match(daemon.url, /^https:\/\/localhost:/)
  ada = await Player.open(daemon.url, 'ada')
  await ada.play()
  assert.ok(ada.received > 100_000 && ada.received < 175_000, `the page and its scripts took ${ada.received} bytes`)
  assert.deepEqual(ada.troubles, [])
})
