// The service worker of the page, on https and on this machine. It keeps a build of the page, so that the page opens, and its parts
// load, while the node does not answer. The page itself is always asked of the node first (docs/client.md).

/** What the build prepends: a hash of this build, and the names of its files that are kept. */
declare const BUILD: { version: string; files: string[] }

interface ExtendableEvent extends Event {
  waitUntil(done: Promise<unknown>): void
}

interface FetchEvent extends ExtendableEvent {
  request: Request
  respondWith(response: Promise<Response>): void
}

// TypeScript's types of service workers exclude those of the page.
const scope = self as unknown as {
  registration: ServiceWorkerRegistration
  clients: { claim(): Promise<void> }
  skipWaiting(): Promise<void>
  addEventListener(type: 'install' | 'activate', listener: (event: ExtendableEvent) => void): void
  addEventListener(type: 'fetch', listener: (event: FetchEvent) => void): void
}

/** How long the node may take to answer for the page. */
const PATIENCE_MS = 8000
/** What a proxy answers for a node that does not. */
const UNANSWERED = [502, 503, 504]

const page = scope.registration.scope // a gateway may be served under a path
const assets = `${page}assets/`
const prefix = `voxeld ${page} `
const cacheName = prefix + BUILD.version

/** Returns the page of the node, or the kept one, marked as such, if the node does not answer. */
async function fetchPage(request: Request): Promise<Response> {
  const answer = await fetch(request, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => null)
  if (answer && !UNANSWERED.includes(answer.status)) return answer
  const kept = await (await caches.open(cacheName)).match(page)
  if (!kept) return answer ?? Response.error()
  const html = await kept.text()
  return new Response(html.replace('<html', '<html data-unanswered'), kept)
}

/** Returns a file with a hash in its name, which never changes, and keeps it. */
async function fetchAsset(request: Request): Promise<Response> {
  const kept = await caches.match(request.url) // of any build: older pages may still be open
  if (kept) return kept
  const cache = await caches.open(cacheName)
  const answer = await fetch(request)
  if (answer.status === 200) await cache.put(request.url, answer.clone()).catch(() => undefined) // the disk may be full
  return answer
}

/** Deletes the files of all other builds but the latest, which another tab may still need. */
async function deleteOthers(): Promise<void> {
  const names = await caches.keys() // in the order in which they were made
  const others = names.filter((other) => other.startsWith(prefix) && other !== cacheName)
  await Promise.all(others.slice(0, -1).map((old) => caches.delete(old)))
}

scope.addEventListener('install', (event) => {
  const files = BUILD.files.map((file) => page + file)
  event.waitUntil(caches.open(cacheName).then((cache) => cache.addAll([page, ...files])))
  void scope.skipWaiting()
})

scope.addEventListener('activate', (event) => event.waitUntil(deleteOthers().then(() => scope.clients.claim())))

scope.addEventListener('fetch', (event) => {
  const { request } = event
  if (request.method !== 'GET') return
  const { origin, pathname } = new URL(request.url)
  if (request.url.startsWith(assets)) event.respondWith(fetchAsset(request))
  else if (request.mode === 'navigate' && [page, `${page}index.html`].includes(origin + pathname))
    event.respondWith(fetchPage(request))
})
