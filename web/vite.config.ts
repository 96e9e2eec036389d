import { defineConfig } from 'vite'

export default defineConfig({
  base: './', // a gateway may be served under a path
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true, // every build copies public/.gitkeep, so that Go can always embed dist
    chunkSizeWarningLimit: 1200,
  },
  worker: { format: 'es' },
  server: {
    // for `npm run dev` with a daemon on this machine
    proxy: { '/ws': { target: 'ws://127.0.0.1:8080', ws: true } },
  },
})
