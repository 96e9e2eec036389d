// A real voxeld in a temporary data directory, on loopback.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const BINARY = process.env.VOXELD_BIN ?? resolve(import.meta.dirname, '../bin/voxeld')
const READY_MS = 30_000
// the daemon takes options from VOXELD_… and refuses names it does not know, such as VOXELD_BIN
const ENVIRONMENT = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VOXELD_')))

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

export class Daemon {
  #process = null
  #output = ''

  constructor(dataDir, port, token) {
    this.dataDir = dataDir
    this.token = token // null for a node that makes its world
    this.url = `http://127.0.0.1:${port}`
    this.port = port
  }

  /** Starts a node that makes a world, or that joins the world of another one. */
  static async start(other = null) {
    await access(BINARY).catch(() => {
      throw new Error(`there is no daemon at ${BINARY}: run \`make build\`, or set VOXELD_BIN`)
    })
    const token = other && (await other.ask('invite')).token
    const daemon = new Daemon(await mkdtemp(join(tmpdir(), 'voxeld-e2e-')), await freePort(), token)
    if (!token) await daemon.#make()
    await daemon.run()
    return daemon
  }

  /** Plans a world of a known seed: the same land, and the same pictures, each time. */
  async #make() {
    const child = spawn(BINARY, ['init', '--data-dir', this.dataDir, '--seed', '33'], { stdio: 'ignore', env: ENVIRONMENT })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`voxeld init: exit ${code}`)
  }

  /** Starts the node (again) and waits for its URL on the output. */
  async run() {
    const args = ['run', '--data-dir', this.dataDir, '--listen', '/ip4/127.0.0.1/tcp/0']
    if (this.token) args.push('--join', this.token)
    args.push('--game', '127.0.0.1:0', '--http', `127.0.0.1:${this.port}`, '--metrics', '127.0.0.1:0')
    this.#output = ''
    const child = spawn(BINARY, args, { stdio: ['ignore', 'pipe', 'pipe'], env: ENVIRONMENT })
    this.#process = child
    await new Promise((ready, failed) => {
      const give = (why) => failed(new Error(`${why}; it said:\n${this.#output}`))
      const timer = setTimeout(() => give('the daemon was not ready in time'), READY_MS)
      const hear = (data) => {
        this.#output += data
        if (!this.#output.includes(this.url)) return
        clearTimeout(timer)
        ready()
      }
      child.stdout.on('data', hear)
      child.stderr.on('data', hear)
      child.once('error', (error) => give(error.message))
      child.once('exit', (code, signal) => {
        clearTimeout(timer)
        give(`the daemon ended with ${code ?? signal}`)
      })
    })
  }

  /** The answer of `voxeld command --json`, which may take as long as it takes the node. */
  async ask(command) {
    const { stdout } = await promisify(execFile)(BINARY, [command, '--data-dir', this.dataDir, '--json'], { env: ENVIRONMENT })
    return JSON.parse(stdout)
  }

  /** Drains the node, waits for its end, and gives what became of its players. */
  async drain() {
    const child = this.#process
    const ended = once(child, 'exit')
    const answer = await this.ask('drain')
    const [code] = await ended
    if (code !== 0) throw new Error(`the drained node ended with ${code}; it said:\n${this.#output}`)
    this.#process = null
    return answer
  }

  /** Ends the node with a signal, at once for SIGKILL. */
  async end(signal = 'SIGTERM') {
    const child = this.#process
    this.#process = null
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }

  async remove() {
    await this.end('SIGKILL')
    await rm(this.dataDir, { recursive: true, force: true })
  }

  get output() {
    return this.#output
  }
}
