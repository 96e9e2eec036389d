package gameserver

import (
	"bytes"
	"net/http"
	"time"
)

// This file serves the world's texture pack, which an operator has set (docs/adr/0118).

// textures serves the pack that the policy names, by its hash: GET /textures/HASH.
func (g *Gateway) textures(w http.ResponseWriter, r *http.Request) {
	hash, set := g.enforcer.Settings().TexturesHash()
	if !set || r.PathValue("hash") != hash.String() {
		http.NotFound(w, r)
		return
	}
	pack, err := g.Contents(hash)
	if err != nil {
		http.Error(w, "this node does not have the texture pack yet", http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Type", "application/zip")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(pack))
}
