// Registers the service worker, which keeps the page for when its node does not answer.

if (import.meta.env.PROD && 'serviceWorker' in navigator)
  // not over http, except on this machine
  navigator.serviceWorker.register('./service-worker.js').catch((reason: unknown) => {
    console.warn('the page cannot be kept', reason) // as in private windows
  })
