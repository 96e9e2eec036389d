package gameserver

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/mod"
)

// texturePack is the world's texture pack, which an operator has set (docs/adr/0118), once somebody has asked for it.
type texturePack struct {
	mu   sync.Mutex
	hash mod.Hash
	pack []byte
}

// textures serves the pack that the policy names, by its hash: GET /textures/HASH.
func (g *Gateway) textures(w http.ResponseWriter, r *http.Request) {
	if !g.limits.Client(addrOf(r)).Allow(admission.Tile) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests from this address: wait a second", http.StatusTooManyRequests)
		return
	}
	hash, set := g.enforcer.Settings().TexturesHash()
	if !set || r.PathValue("hash") != hash.String() {
		http.NotFound(w, r)
		return
	}
	pack, err := g.texturePack.open(hash, g.Contents)
	if err != nil {
		http.Error(w, "this node does not have the texture pack yet", http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Type", "application/zip")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(pack))
}

// open returns the pack with a hash, which is read, inflated and verified once.
func (p *texturePack) open(hash mod.Hash, read func([32]byte) ([]byte, error)) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hash == hash {
		return p.pack, nil
	}
	pack, err := read(hash)
	if err == nil {
		p.hash, p.pack = hash, pack
	}
	return pack, err
}
