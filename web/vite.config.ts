import { defineConfig } from 'vite'

export default defineConfig({
  base: './', // a gateway may sit behind a path
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true, // public/.gitkeep comes back with every build, so that Go can always embed dist
    chunkSizeWarningLimit: 1200,
  },
  worker: { format: 'es' },
  server: {
    // `npm run dev` against a daemon that runs beside it
    proxy: { '/ws': { target: 'ws://127.0.0.1:8080', ws: true } },
  },
})
