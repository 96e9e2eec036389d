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
        // what both pages need of the game, and what parts that are loaded later draw with: one file each, instead of several small ones
        codeSplitting: {
          groups: [
            { name: 'common', test: COMMON },
            { name: 'gl', test: /\/src\/gl\// },
          ],
        },
        entryFileNames: ({ name }) => (name === 'service-worker' ? '[name].js' : 'assets/[name]-[hash].js'),
      },
    },
  },
  worker: { format: 'es' },
  plugins: [minifyShaders(), preloadGame(), listFiles(), compress()],
  server: {
    // for `npm run dev` with a daemon on this machine
    proxy: { '/ws': { target: 'ws://127.0.0.1:8080', ws: true } },
  },
})

/** Removes comments, indentation and empty lines from shaders, which minifiers of JavaScript leave as they are. */
function minifyShaders(): Plugin {
  return {
    name: 'minify-shaders',
    apply: 'build',
    enforce: 'pre',
    transform: (code) =>
      code.replace(/\/\* glsl \*\/ `[^`]*`/g, (shader) => shader.replace(/ *\/\/.*$/gm, '').replace(/\n\s+/g, '\n')),
  }
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
