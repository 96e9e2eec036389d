import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const DIST = join(import.meta.dirname, 'dist')

/** Modules that the game and the public map share. */
const COMMON = /\/src\/(net\/place-link|world\/(coords|hash)|render\/(pixels|tiles|mipmaps|figure|canvas))\.ts$/

export default defineConfig({
  base: './', // a gateway may be served under a path
  build: {
    target: 'es2022',
    outDir: DIST,
    emptyOutDir: true, // every build copies public/.gitkeep, so that Go can always embed dist
    chunkSizeWarningLimit: 1200,
    modulePreload: false, // preloadGame does it
    rolldownOptions: {
      input: ['index.html', 'map.html', 'src/service-worker.ts'].map((name) => join(import.meta.dirname, name)),
      output: {
        // what both pages need of the game: one file, instead of several small ones
        codeSplitting: { groups: [{ name: 'common', test: COMMON }] },
        entryFileNames: ({ name }) => (name === 'service-worker' ? '[name].js' : 'assets/[name]-[hash].js'),
      },
    },
  },
  worker: { format: 'es' },
  plugins: [pruneThree(), preloadGame(), listFiles(), compress()],
  server: {
    // for `npm run dev` with a daemon on this machine
    proxy: { '/ws': { target: 'ws://127.0.0.1:8080', ws: true } },
  },
})

/** The shaders of three.js that the client draws with: those of LineBasicMaterial. All others are its own. */
const SHADERS = ['meshbasic_vert', 'meshbasic_frag']

/** What replaces parts of three.js that the client never uses: headsets, shadow maps, groups of uniforms, environments, morph targets,
 * compressed textures, and the tables of physically based materials. */
const STUBS: [name: string, part: RegExp, stub: string][] = [
  [
    'WebXRManager',
    /^class WebXRManager extends EventDispatcher \{$.*?^\}$/ms,
    'class WebXRManager extends EventDispatcher { enabled = false; isPresenting = false; getEnvironmentBlendMode() {} setAnimationLoop() {} dispose() {} }',
  ],
  [
    'WebGLShadowMap',
    /^function WebGLShadowMap\( .*? \) \{$.*?^\}$/ms,
    'function WebGLShadowMap() { this.enabled = false; this.type = 1; this.render = () => {} }',
  ],
  [
    'WebGLUniformsGroups',
    /^function WebGLUniformsGroups\( .*? \) \{$.*?^\}$/ms,
    'function WebGLUniformsGroups() { this.dispose = () => {} }',
  ],
  [
    'WebGLEnvironments',
    /^function WebGLEnvironments\( .*? \) \{$.*?^\}$/ms,
    'function WebGLEnvironments() { this.get = () => null; this.dispose = () => {} }',
  ],
  [
    'WebGLMorphtargets',
    /^function WebGLMorphtargets\( .*? \) \{$.*?^\}$/ms,
    'function WebGLMorphtargets() { this.update = () => {} }',
  ],
  ['PMREMGenerator', /^class PMREMGenerator \{$.*?^\}$/ms, 'class PMREMGenerator {}'],
  ['compressed textures', /^\t\t\/\/ S3TC$.*?(?=^\t\t\/\/$)/ms, ''],
  ['the DFG table', /^const DATA = new Uint16Array\( \[$.*?^\] \);$/ms, 'const DATA = new Uint16Array( 512 );'],
]

/** Removes from three.js the sources of all other shaders, and STUBS: a sixth of what the page loads. */
function pruneThree(): Plugin {
  return {
    name: 'prune-three',
    apply: 'build',
    transform(code, id) {
      if (!id.endsWith('/three/build/three.module.js')) return null
      code = withoutShaders(code)
      for (const [name, part, stub] of STUBS) {
        if (!part.test(code)) throw new Error(`prune three: it has no ${name}`)
        code = code.replace(part, stub)
      }
      return { code, map: null }
    },
  }
}

function withoutShaders(code: string): string {
  const table = /^const ShaderChunk = \{(.*?)^\};$/ms.exec(code)?.[1] ?? ''
  const variables = new Map(
    Array.from(table.matchAll(/(\w+): ([\w$]+)/g), ([, name = '', variable = '']) => [name, variable]),
  )
  const sources = new Map(
    Array.from(code.matchAll(/^(?:var|const) ([\w$]+) = ("(?:[^"\\]|\\.)*");$/gm), ([, variable = '', source = '']) => [
      variable,
      source,
    ]),
  )
  const needed = new Set<string>()
  const need = (name: string): void => {
    const variable = variables.get(name) ?? ''
    const source = sources.get(variable)
    if (source === undefined) throw new Error(`prune three: it has no shader ${name}`)
    if (needed.has(variable)) return
    needed.add(variable)
    for (const [, included = ''] of source.matchAll(/#include <(\w+)>/g)) need(included)
  }
  SHADERS.forEach(need)
  // those that the renderer adds to every program
  for (const [, name = ''] of code.matchAll(/ShaderChunk\[ '(\w+)' \]/g)) need(name)
  for (const variable of variables.values()) {
    const source = sources.get(variable)
    if (source !== undefined && !needed.has(variable))
      code = code.replace(` ${variable} = ${source};`, ` ${variable} = "";`)
  }
  return code
}

/** Lets the page load the game while the title screen starts. */
function preloadGame(): Plugin {
  return {
    name: 'preload-game',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler(_, { bundle, path }) {
        if (path !== '/index.html') return []
        const chunks = Object.values(bundle ?? {}).filter((file) => file.type === 'chunk')
        const game = chunks.find((chunk) => chunk.facadeModuleId?.endsWith('/game/start.ts'))
        if (!game) throw new Error('preload the game: it has no chunk')
        return [game.fileName, ...game.imports].flatMap((name) =>
          chunks.some((chunk) => chunk.fileName === name && chunk.isEntry)
            ? []
            : [
                {
                  tag: 'link',
                  injectTo: 'head',
                  attrs: { rel: 'modulepreload', crossorigin: true, href: `./${name}` },
                },
              ],
        )
      },
    },
  }
}

/** Parts of the client that few players use, which the service worker keeps once they are used. */
const RARE = /\/(map\.html|src\/map-page\.ts|src\/public-map\.ts|src\/bench\/.*)$/

/** Writes into the service worker which files belong to this build, and a hash of them and of the page: another build has another worker. */
function listFiles(): Plugin {
  return {
    name: 'list-files',
    apply: 'build',
    writeBundle(_, bundle) {
      const files = Object.values(bundle)
        .filter(({ fileName }) => /^assets\/.*\.(css|js)$/.test(fileName))
        .filter((file) => !(file.type === 'chunk' && RARE.test(file.facadeModuleId ?? '')))
        .map(({ fileName }) => fileName)
        .sort()
      const hash = createHash('sha256')
        .update(files.join())
        .update(readFileSync(join(DIST, 'index.html')))
      const build = JSON.stringify({ version: hash.digest('hex').slice(0, 16), files })
      const worker = join(DIST, 'service-worker.js')
      writeFileSync(worker, `const BUILD=${build};${readFileSync(worker, 'utf8')}`)
    },
  }
}

/** The last step of a build: writes a brotli and a gzip copy beside each file. The daemon sends the one that a browser accepts. */
function compress(): Plugin {
  return {
    name: 'compress',
    apply: 'build',
    closeBundle() {
      for (const name of readdirSync(DIST, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(css|html|js|json|svg)$/.test(name)) continue
        const path = join(DIST, name)
        const text = readFileSync(path)
        writeFileSync(
          `${path}.br`,
          brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: text.length } }),
        )
        writeFileSync(`${path}.gz`, gzipSync(text, { level: 9 }))
      }
    },
  }
}
