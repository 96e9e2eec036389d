package horizon

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// world is what range queries return: one region, founded or not.
type world struct {
	mu      sync.Mutex
	founded bool
	applied uint64
	points  []nodemsg.SurfacePoint
	fails   bool
	clipped bool
	leader  string
	missing []region.MissingRange

	wide, narrow, running, most int
}

var home = grid.ChunkPos{X: 3, Z: 5}

func (w *world) query(_ context.Context, q region.RangeQuery) (found region.RangeResult, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running++
	w.most = max(w.most, w.running)
	w.mu.Unlock()
	<-time.After(50 * time.Millisecond)
	w.mu.Lock()
	w.running--
	if q.Surface {
		w.narrow++
	} else {
		w.wide++
	}
	if w.fails {
		return found, errors.New("no")
	}
	cell := grid.CellAt(home, grid.FoundingLabel)
	found.Missing = w.missing
	if !w.founded || !cell.Area().Overlaps(q.Area) {
		return found, nil
	}
	g := nodemsg.RangeRegion{Region: nodemsg.Region{ID: 7, Cell: cell, Leader: w.leader}, State: nodemsg.StateOpen, Edits: len(w.points), Applied: w.applied, Clipped: w.clipped}
	if q.Surface {
		g.Surface = []nodemsg.ChunkSurface{{Chunk: home, Points: w.points}}
	}
	found.Regions = []nodemsg.RangeRegion{g}
	return found, nil
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func newHorizon(t *testing.T, w *world) *Horizon {
	return New(w.query, newGenerator(t), prometheus.NewRegistry())
}

func (w *world) hash(t *testing.T, h *Horizon, k Key) string {
	t.Helper()
	hash, ok := h.Hash(t.Context(), k)
	if !ok {
		t.Fatal("no hash")
	}
	return hash
}

// A tile changes when somebody builds, at every level; the old one is still served under its name.
func TestTilesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{founded: true, applied: 3}
		h := newHorizon(t, w)
		var before [Levels]string
		for level := range Levels {
			before[level] = w.hash(t, h, Key{Level: level})
		}
		if w.narrow != 0 {
			t.Errorf("%d surfaces of land without edits were asked for", w.narrow)
		}
		w.set(func() {
			w.applied, w.points = 4, []nodemsg.SurfacePoint{{Index: 5, Height: 120, Block: chunk.Brick}}
		})
		<-time.After(sectorFor + time.Second)
		for level := range Levels {
			k := Key{Level: level}
			now := w.hash(t, h, k)
			if now == before[level] {
				t.Fatalf("level %d: the tile has not changed", level)
			}
			for _, hash := range []string{before[level], now} {
				packed, ok := h.Content(t.Context(), k, hash)
				if !ok {
					t.Fatalf("level %d: a tile is gone", level)
				}
				tile := unpack(t, level, packed)
				if (len(tile.Built) == 1) != (hash == now) {
					t.Errorf("level %d: built %v", level, tile.Built)
				}
			}
		}
		asked := w.narrow
		for range 20 { // nothing has changed
			<-time.After(sectorFor + time.Second)
			w.hash(t, h, Key{})
		}
		if w.narrow != asked {
			t.Errorf("unchanged land was asked for %d times", w.narrow-asked)
		}
		other := newHorizon(t, w) // another node has the same tiles
		for level := range Levels {
			if k := (Key{Level: level}); w.hash(t, other, k) != w.hash(t, h, k) {
				t.Errorf("level %d: two nodes have different tiles", level)
			}
		}
	})
}

func unpack(t *testing.T, level int, packed []byte) Tile {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(string(packed)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	tile, err := decode(level, b)
	if err != nil {
		t.Fatal(err)
	}
	return tile
}

// While nodes do not answer, what is known of their land stays, and queries are bounded.
func TestSilentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{founded: true, applied: 3, points: []nodemsg.SurfacePoint{{Index: 5, Height: 120, Block: chunk.Brick}}}
		h := newHorizon(t, w)
		built := w.hash(t, h, Key{})
		w.set(func() { w.fails = true })
		var wg sync.WaitGroup
		wide := w.wide
		for i := range 60 {
			wg.Go(func() {
				if w.hash(t, h, Key{}) != built {
					t.Error("the tile has changed")
				}
				h.Hash(t.Context(), Key{X: int32(i) * 100})
			})
		}
		wg.Wait()
		<-time.After(sectorFor + time.Second)
		if w.hash(t, h, Key{}) != built || w.most > atOnce {
			t.Errorf("%d queries at once", w.most)
		}
		w.set(func() { w.fails, w.clipped, w.applied, w.points = false, true, 4, nil })
		<-time.After(sectorFor + time.Second)
		if w.hash(t, h, Key{}) == built {
			t.Error("an incomplete answer with the chunk is ignored")
		}
		if got := w.wide - wide; got > 60+4 {
			t.Errorf("%d queries for 61 sectors", got)
		}
	})
}

// So many tiles are computed in a second, whoever asks.
func TestTilesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHorizon(t, &world{})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		n := 0
		for x := int32(0); ; x++ {
			h.edits.mu.sectors.Add(sectorOf(Key{X: x}), look{at: time.Now()}) // no queries
			h.edits.mu.sectors.Add(sectorOf(Key{X: x + 1}), look{at: time.Now()})
			h.edits.mu.sectors.Add(sectorOf(Key{X: x, Z: 1}), look{at: time.Now()})
			if _, ok := h.Hash(ctx, Key{X: x}); !ok {
				break
			}
			n++
		}
		if most := groundBurst + 2*groundRate; n > most+1 || n < groundBurst {
			t.Errorf("%d tiles in 2 s, want %d", n, most)
		}
		if h.grounds.Len() > maxGrounds {
			t.Errorf("%d tiles of untouched land are kept", h.grounds.Len())
		}
	})
}

func TestHandler(t *testing.T) {
	on, allowed := true, true
	h := newHorizon(t, &world{})
	handler := h.Handler(func() bool { return on }, func(*http.Request) bool { return allowed })
	get := func(path, encoding string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	var answer hashes
	if err := json.Unmarshal(get("/surface?tiles=0.1.-2,2.0.0", "").Body.Bytes(), &answer); err != nil || len(answer.Tiles) != 2 || answer.More {
		t.Fatalf("%+v: %v", answer, err)
	}
	path := "/surface/0.1.-2/" + answer.Tiles["0.1.-2"]
	packed, plain := get(path, "gzip, br"), get(path, "")
	if packed.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(packed.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("%v", packed.Header())
	}
	if n := packed.Body.Len(); n > 12_000 {
		t.Errorf("a tile of %d bytes", n)
	}
	if _, err := decode(0, plain.Body.Bytes()); err != nil || plain.Header().Get("Content-Encoding") != "" {
		t.Errorf("without compression: %v", err)
	}
	for path, want := range map[string]int{
		"/surface/0.1.-2/AAAA": http.StatusNotFound, "/surface/9.1.-2/AAAA": http.StatusNotFound, "/surface?tiles=": http.StatusBadRequest,
		"/surface?tiles=0.0.0" + strings.Repeat(",0.0.0", maxNamed): http.StatusBadRequest,
	} {
		if w := get(path, "gzip"); w.Code != want || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	allowed = false
	if w := get(path, "gzip"); w.Code != http.StatusTooManyRequests {
		t.Errorf("an address that asks too much: %d", w.Code)
	}
	on = false
	if w := get(path, "gzip"); w.Code != http.StatusNotFound {
		t.Errorf("without a map: %d", w.Code)
	}
}

// An address, or a /64 of IPv6, with many requests for hashes or tiles at the same time does not make others wait: some
// of its requests are refused. Those for tiles do not take the place of those for hashes, nor the other way round.
func TestRequestsOfAnAddress(t *testing.T) {
	hashes, tile := "?tiles=0.1.-2", "/0.1.-2/AAAAAAAAAAAAAAAA" // which has another hash
	answered := map[string]int{hashes: http.StatusOK, tile: http.StatusNotFound}
	for kind, otherKind := range map[string]string{hashes: tile, tile: hashes} {
		synctest.Test(t, func(t *testing.T) {
			h := newHorizon(t, &world{})
			handler := h.Handler(func() bool { return true }, func(*http.Request) bool { return true })
			var wg sync.WaitGroup
			ask := func(address, path string) (code func() int) {
				w := httptest.NewRecorder()
				wg.Go(func() {
					r := httptest.NewRequest(http.MethodGet, "/surface"+path, nil)
					r.RemoteAddr = address
					handler.ServeHTTP(w, r)
				})
				synctest.Wait() // the query has begun
				return func() int { return w.Code }
			}
			var accepted []func() int
			for i := range maxAsking {
				accepted = append(accepted, ask(fmt.Sprintf("[2001:db8::%d]:1", i+1), kind))
			}
			refused := ask("[2001:db8::99]:1", kind)
			another, ofOtherKind := ask("[2001:db8:0:1::1]:1", kind), ask("[2001:db8::99]:1", otherKind)
			wg.Wait()
			later := ask("[2001:db8::99]:1", kind)
			wg.Wait()
			if refused() != http.StatusTooManyRequests {
				t.Errorf("%s: one more request of the address: %d", kind, refused())
			}
			for i, code := range append(accepted, another, later) {
				if code() != answered[kind] {
					t.Errorf("%s: request %d: %d", kind, i, code())
				}
			}
			if ofOtherKind() != answered[otherKind] {
				t.Errorf("%s: and then %s: %d", kind, otherKind, ofOtherKind())
			}
			if len(h.mu.asking) != 0 {
				t.Errorf("%v is kept", h.mu.asking)
			}
		})
	}
}

// Hosts are those of the latest look at a sector. A look that fails changes nothing.
func TestHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{founded: true, leader: "a"}
		handler := newHorizon(t, w).Handler(func() bool { return true }, func(*http.Request) bool { return true })
		get := func(query string) (hosts []Host, code int) {
			<-time.After(sectorFor + time.Second)
			answer, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/surface/hosts?sectors="+query, nil)
			handler.ServeHTTP(answer, r)
			var all hostsAnswer
			if err := json.Unmarshal(answer.Body.Bytes(), &all); answer.Code == http.StatusOK && err != nil {
				t.Fatal(err)
			}
			return all.Sectors["0.0"], answer.Code
		}
		want := func(when string, want ...Host) {
			t.Helper()
			if got, _ := get("0.0"); !slices.Equal(got, want) {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		here := Host{Width: 512, Depth: 512, Node: "a"}
		want("led", here)
		w.set(func() { w.fails = true })
		want("the query fails", here)
		w.set(func() { w.fails, w.leader = false, "b" })
		here.Node = "b"
		want("led by another node", here)
		w.set(func() {
			w.founded, w.missing = false, []region.MissingRange{{Cell: grid.CellAt(home, grid.FoundingLabel)}}
		})
		want("nobody answers", Host{Width: 512, Depth: 512, Lost: true})
		for _, query := range []string{"", "0", "0.0.0", "536870912.0", "0.-524289", "0.0" + strings.Repeat(",0.0", maxSectorsNamed)} {
			if _, code := get(query); code != http.StatusBadRequest {
				t.Errorf("sectors %.20q: %d", query, code)
			}
		}
	})
}
