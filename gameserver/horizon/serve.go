package horizon

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/internal/netaddr"
	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// maxNamed is the most tiles in one request for hashes, and hashTime how long their hashes are computed. The rest
	// are left out.
	maxNamed = 80
	hashTime = 2500 * time.Millisecond
	// maxAsking is the most requests for hashes or hosts of one address at the same time, and the most for tiles that
	// are not kept: they wait for each other, and others must not wait for all. A client has four requests for tiles at
	// once, and needs their hashes meanwhile.
	maxAsking = 4
)

// hashes is the answer to a request for hashes, by name. More means that some are left out, and the same request may
// return them.
type hashes struct {
	Tiles map[string]string `json:"tiles"`
	More  bool              `json:"more,omitempty"`
}

// Handler serves the tiles:
//
//	GET /surface?tiles=0.1.-2,1.0.0       the hashes of tiles
//	GET /surface/0.1.-2/ID0Y2eVqFm9KPc5N  a tile
//	GET /surface/hosts?sectors=0.-1,0.0   which nodes lead the regions there
//
// Enabled reports whether there are tiles now; allow, whether the sender of the request may be answered, and counts it.
func (h *Horizon) Handler(enabled func() bool, allow func(*http.Request) bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /surface", h.serveHashes)
	mux.HandleFunc("GET /surface/hosts", h.serveHosts)
	mux.HandleFunc("GET /surface/{tile}/{hash}", h.serveTile)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !enabled():
			http.Error(w, "this node has no map", http.StatusNotFound)
		case !allow(r):
			h.refuse(w)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func (h *Horizon) serveHashes(w http.ResponseWriter, r *http.Request) {
	names := strings.SplitN(r.URL.Query().Get("tiles"), ",", maxNamed+1)
	if len(names) > maxNamed {
		http.Error(w, "too many tiles in one request", http.StatusBadRequest)
		return
	}
	from := asker{address: addressOf(r)}
	if !h.begin(w, from) {
		return
	}
	defer h.end(from)
	ctx, cancel := context.WithTimeout(r.Context(), hashTime)
	defer cancel()
	answer := hashes{Tiles: make(map[string]string, len(names))}
	for _, name := range names {
		k, err := ParseKey(name)
		if err != nil {
			http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
			return
		}
		hash, ok := h.Hash(ctx, k)
		if !ok {
			answer.More = true
			break
		}
		answer.Tiles[name] = hash
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck,errchkjson // the client left
}

// maxSectorsNamed is the most sectors in one request for hosts.
const maxSectorsNamed = 36

// hostsAnswer is the answer to a request for hosts, by the names of the sectors. Those of which nothing is known yet
// are left out.
type hostsAnswer struct {
	Sectors map[string][]Host `json:"sectors"`
}

func (h *Horizon) serveHosts(w http.ResponseWriter, r *http.Request) {
	names := strings.SplitN(r.URL.Query().Get("sectors"), ",", maxSectorsNamed+1)
	if len(names) > maxSectorsNamed {
		http.Error(w, "too many sectors in one request", http.StatusBadRequest)
		return
	}
	sectors := make([]sector, len(names))
	for i, name := range names {
		var err error
		if sectors[i], err = parseSector(name); err != nil {
			http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
			return
		}
	}
	from := asker{address: addressOf(r)}
	if !h.begin(w, from) {
		return
	}
	defer h.end(from)
	ctx, cancel := context.WithTimeout(r.Context(), hashTime)
	defer cancel()
	answer := hostsAnswer{Sectors: make(map[string][]Host, len(sectors))}
	for _, at := range sectors {
		if hosts, ok := h.edits.hosts(ctx, at); ok {
			answer.Sectors[at.String()] = hosts
		}
	}
	w.Header().Set("Cache-Control", "public, max-age=2")
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck,errchkjson // the client left
}

// addressOf returns what a request is charged to.
func addressOf(r *http.Request) netip.Prefix {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{} // it has that form
	}
	return netaddr.Charged(from.Addr())
}

// begin counts a request until end is called. If there are too many, it refuses the request and reports false.
func (h *Horizon) begin(w http.ResponseWriter, from asker) bool {
	h.mu.Lock()
	room := h.mu.asking[from] < maxAsking
	if room {
		h.mu.asking[from]++
	}
	h.mu.Unlock()
	if !room {
		h.refuse(w)
	}
	return room
}

func (h *Horizon) end(from asker) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.asking[from]--; h.mu.asking[from] == 0 {
		delete(h.mu.asking, from)
	}
}

// refuse answers a request of an address that sends too many.
func (h *Horizon) refuse(w http.ResponseWriter) {
	h.metrics.refused.Inc()
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests from this address: wait a second", http.StatusTooManyRequests)
}

func (h *Horizon) serveTile(w http.ResponseWriter, r *http.Request) {
	k, err := ParseKey(r.PathValue("tile"))
	if err != nil {
		http.Error(w, wire.ErrorText(err), http.StatusNotFound)
		return
	}
	content, ok := h.kept(k, r.PathValue("hash"))
	if !ok { // it may have to be made
		from := asker{address: addressOf(r), tile: true}
		if !h.begin(w, from) {
			return
		}
		defer h.end(from)
		ctx, cancel := context.WithTimeout(r.Context(), hashTime)
		defer cancel()
		content, ok = h.Content(ctx, k, r.PathValue("hash"))
	}
	if !ok {
		http.Error(w, "the tile has another hash now: ask for its hash again", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("ETag", `"`+r.PathValue("hash")+`"`)
	w.Header().Add("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.Write(content) //nolint:errcheck // the client left
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err == nil {
		_, err = io.Copy(w, plain)
	}
	if err != nil {
		http.Error(w, "the tile cannot be read", http.StatusInternalServerError)
	}
}
