package httpd

import "net/http"

// The Content-Security-Policy of the page. Scripts, workers and styles come from this node only, and none is inline.
// Sessions may be opened, and surface tiles fetched, at any node, because a node that stops sends its players to
// others; a page loaded over https opens only wss and https. The icons of blocks are data URLs.
const (
	policy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; manifest-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self' wss: https:"
	plainPolicy = policy + " ws: http:"
)

// withHeaders adds the headers that protect the page to every response.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		if r.TLS == nil {
			h.Set("Content-Security-Policy", plainPolicy)
		} else {
			h.Set("Content-Security-Policy", policy)
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}
