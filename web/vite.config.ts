import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const DIST = join(import.meta.dirname, 'dist')

export default defineConfig({
  base: './', // a gateway may be served under a path
  build: {
    target: 'es2022',
    outDir: DIST,
    emptyOutDir: true, // every build copies public/.gitkeep, so that Go can always embed dist
    chunkSizeWarningLimit: 1200,
  },
  worker: { format: 'es' },
  plugins: [compress()],
  server: {
    // for `npm run dev` with a daemon on this machine
    proxy: { '/ws': { target: 'ws://127.0.0.1:8080', ws: true } },
  },
})

/** The last step of a build: writes a brotli and a gzip copy beside each file. The daemon sends the one that a browser accepts. */
function compress(): Plugin {
  return {
    name: 'compress',
    apply: 'build',
    closeBundle() {
      for (const name of readdirSync(DIST, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(css|html|js|svg)$/.test(name)) continue
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
