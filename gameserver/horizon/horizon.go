// Package horizon serves tiles of the land as it looks from afar: heights, the blocks on top, and what was built. A
// tile is the untouched land, which this node computes, with what edits have changed, which range queries return
// (docs/adr/0053). Its name holds the hash of its bytes: every node has the same tile under the same name, and a name
// never changes its meaning.
//
// Work is bounded: tiles are computed one at a time and so many a second, the land of others is asked about every few
// seconds at most, and answers are shared by all who ask. No region is founded or woken.
package horizon

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/terrain"
)

const (
	// maxGrounds bounds the tiles of untouched land that are kept, at 68 kB each, and maxContents the compressed tiles,
	// at about 5 kB each.
	maxGrounds, maxContents = 256, 2048
	// groundRate and groundBurst are how many tiles of untouched land are computed in a second, and at once. One takes
	// 10 to 20 ms.
	groundRate, groundBurst = 20, 160
)

// Terrain computes the untouched land; a *terrain.Generator. Any goroutine.
type Terrain interface {
	VistaIn(room *terrain.Room, minX, minZ, step, n int) []terrain.TopBlock
}

// Horizon makes tiles, and keeps them. Any goroutine may use it.
type Horizon struct {
	terrain Terrain
	edits   *edits
	one     *semaphore.Weighted // one tile is computed at a time, in room
	room    terrain.Room
	limit   *rate.Limiter
	grounds *lru.Cache[Key, []terrain.TopBlock]
	metrics metrics

	mu struct {
		sync.Mutex
		asking   map[asker]int // requests that are being answered
		made     *lru.Cache[Key, made]
		contents *lru.Cache[string, []byte] // by name and hash; compressed with gzip
	}
}

// asker names requests that are counted together: an address's for hashes and hosts, or its for tiles that are not
// kept.
type asker struct {
	address netip.Prefix
	tile    bool
}

// made is the latest tile of a key.
type made struct {
	edits uint64 // see edits.of
	hash  string
}

// New returns a Horizon.
func New(query Query, t Terrain, r prometheus.Registerer) *Horizon {
	h := &Horizon{
		terrain: t, edits: newEdits(query), one: semaphore.NewWeighted(1), limit: rate.NewLimiter(groundRate, groundBurst),
		grounds: newCache[Key, []terrain.TopBlock](maxGrounds), metrics: newMetrics(r),
	}
	h.mu.asking = make(map[asker]int)
	h.mu.made, h.mu.contents = newCache[Key, made](maxContents), newCache[string, []byte](maxContents)
	return h
}

// Hash returns the hash of the tile as it is now, which may be some seconds old. It reports false if the context ends
// first.
func (h *Horizon) Hash(ctx context.Context, k Key) (string, bool) {
	changed, version := h.edits.of(ctx, k)
	if known, ok := h.known(k); ok && known.edits == version {
		return known.hash, true
	}
	if !h.grounds.Contains(k) && h.limit.Wait(ctx) != nil { // before it holds up others
		return "", false
	}
	if h.one.Acquire(ctx, 1) != nil {
		return "", false
	}
	defer h.one.Release(1)
	if known, ok := h.known(k); ok && known.edits == version { // made meanwhile
		return known.hash, true
	}
	ground, ok := h.grounds.Get(k)
	if !ok {
		ground = h.terrain.VistaIn(&h.room, int(k.X)*k.side(), int(k.Z)*k.side(), k.step(), Points)
		h.grounds.Add(k, ground)
	}
	content := compose(k, ground, changed).Encode()
	sum := sha256.Sum256(content)
	hash := base64.RawURLEncoding.EncodeToString(sum[:12])
	h.metrics.made.Inc()
	packed := pack(content)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.made.Add(k, made{version, hash})
	h.mu.contents.Add(k.String()+"/"+hash, packed)
	return hash, true
}

func (h *Horizon) known(k Key) (made, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.mu.made.Get(k)
	return known, ok && h.mu.contents.Contains(k.String()+"/"+known.hash)
}

// Content returns the bytes of a tile that has the hash, compressed with gzip. It reports false if the tile has another
// one now, and this one is no longer kept.
func (h *Horizon) Content(ctx context.Context, k Key, hash string) ([]byte, bool) {
	for range 2 {
		if content, ok := h.kept(k, hash); ok {
			return content, true
		}
		if now, ok := h.Hash(ctx, k); !ok || now != hash {
			return nil, false
		}
	}
	return nil, false
}

func (h *Horizon) kept(k Key, hash string) (content []byte, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.contents.Get(k.String() + "/" + hash)
}

func pack(content []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	w.Write(content) //nolint:errcheck // a buffer accepts everything
	w.Close()        //nolint:errcheck // as above
	return b.Bytes()
}

type metrics struct {
	made, refused prometheus.Counter
}

func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		made: prometheus.NewCounter(prometheus.CounterOpts{Name: "voxeld_surface_tiles_total", Help: "Surface tiles of far land made."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_surface_tile_refusals_total", Help: "Requests for surface tiles refused: too many of their address.",
		}),
	}
	r.MustRegister(m.made, m.refused)
	return m
}
