// A voxeld process with a temporary data directory, on loopback. All its sockets use port 0 at the first start, so that
// daemons cannot collide with other processes; the player's address is read from the daemon's output.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const BINARY = process.env.VOXELD_BIN ?? resolve(import.meta.dirname, '../../bin/voxeld')
const READY_MS = 30_000
/** Seeds of worlds: open grassland where players start, which is drawn fast; and hills with trees, for what measures drawing. */
const GRASSLAND = 9
export const HILLS = 33
const PORT_RETRY_MS = 250
const READY = /^ *Play: +(https?:\/\/\S+)\n/m // printed once the node serves players
const PORT_IN_USE = /address already in use/
// the daemon reads options from VOXELD_… and rejects unknown names, such as VOXELD_BIN
const ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VOXELD_')))

export class Daemon {
  #process = null
  #output = ''

  constructor(dataDir, token, flags) {
    this.dataDir = dataDir
    this.flags = flags
    this.token = token // null for a node that creates its world
    this.url = null // where players reach the node; set by the first start
  }

  /** Starts a node, with further flags, that creates a world of a seed, or that joins the world of another node. */
  static async start(other = null, flags = [], seed = GRASSLAND) {
    await access(BINARY).catch(() => {
      throw new Error(`no daemon at ${BINARY}: run \`make build\`, or set VOXELD_BIN`)
    })
    const token = other && (await other.invite())
    const daemon = new Daemon(await mkdtemp(join(tmpdir(), 'voxeld-e2e-')), token, flags)
    if (!token) await daemon.#init(seed)
    await daemon.run()
    return daemon
  }

  /** Configures a world with a fixed seed, so that land and screenshots are the same in each run. */
  async #init(seed) {
    const child = spawn(BINARY, ['init', '--data-dir', this.dataDir, '--seed', String(seed)], {
      stdio: 'ignore',
      env: ENVIRONMENT,
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`voxeld init: exit ${code}`)
  }

  /** Starts the node and waits until it is ready. A restarted node gets its old HTTP port back, because pages reconnect to it. */
  async run() {
    const deadline = Date.now() + READY_MS
    for (;;) {
      try {
        await this.#spawn(this.url ? new URL(this.url).host : '127.0.0.1:0')
        return
      } catch (error) {
        // after the first start, another socket may hold the port for a moment
        if (!this.url || !PORT_IN_USE.test(this.#output) || Date.now() > deadline) throw error
        await pause(PORT_RETRY_MS)
      }
    }
  }

  /** Starts the process with an HTTP address, and waits for the URL on its output. */
  async #spawn(http) {
    const args = ['run', '--data-dir', this.dataDir, '--listen', '/ip4/127.0.0.1/tcp/0']
    if (this.token) args.push('--join', this.token)
    args.push('--game', '127.0.0.1:0', '--http', http, '--metrics', '127.0.0.1:0', ...this.flags)
    this.#output = ''
    const child = spawn(BINARY, args, { stdio: ['ignore', 'pipe', 'pipe'], env: ENVIRONMENT })
    this.#process = child
    await new Promise((ready, failed) => {
      const fail = (reason) => {
        clearTimeout(timer)
        failed(new Error(`${reason}; its output:\n${this.#output}`))
      }
      const timer = setTimeout(() => fail('the daemon was not ready in time'), READY_MS)
      const read = (data) => {
        this.#output += data
        const [, url] = READY.exec(this.#output) ?? []
        if (!url) return
        this.url = url
        clearTimeout(timer)
        ready()
      }
      child.stdout.on('data', read)
      child.stderr.on('data', read)
      child.once('error', (error) => fail(error.message))
      child.once('close', (code, signal) => fail(`the daemon exited with ${code ?? signal}`)) // all output has been read
    })
  }

  /** Returns the answer of `voxeld command --json`. It has no timeout. */
  async ask(command) {
    const { stdout } = await promisify(execFile)(BINARY, [command, '--data-dir', this.dataDir, '--json'], {
      env: ENVIRONMENT,
    })
    return JSON.parse(stdout)
  }

  /** Returns a token for another node. */
  invite() {
    return this.operate('invite')
  }

  /** Runs a command on the node, and returns its output. */
  async operate(...args) {
    const { stdout } = await promisify(execFile)(BINARY, [...args, '--data-dir', this.dataDir], { env: ENVIRONMENT })
    return stdout.trim()
  }

  /** Drains the node, waits until it exits, and returns the report about its players. */
  async drain() {
    const child = this.#process
    const ended = once(child, 'exit')
    const answer = await this.ask('drain')
    const [code] = await ended
    if (code !== 0) throw new Error(`the drained node exited with ${code}; its output:\n${this.#output}`)
    this.#process = null
    return answer
  }

  /** Stops the node with a signal and waits until it has exited. */
  async end(signal = 'SIGTERM') {
    const child = this.#process
    this.#process = null
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  async remove() {
    await this.end('SIGKILL')
    await rm(this.dataDir, { recursive: true, force: true })
  }

  get output() {
    return this.#output
  }
}
