package horizon

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// sectorSide is the width of a sector in tiles of level 0: 2,048 blocks, a domain, which has 16 founding cells.
	sectorSide = 8
	// sectorFor is how long a sector is not looked at again, and closedFor how long what is not known to change is
	// kept.
	sectorFor, closedFor = 3 * time.Second, 30 * time.Second
	// maxSectors and maxSquares bound what is kept; a square has up to 40 kB, mostly far less.
	maxSectors, maxSquares = 128, 1024
	// atOnce is how many range queries run at the same time, and perLook the most squares that are asked for in one
	// look at a sector.
	atOnce, perLook = 4, 32
	// Looks at sectors a second: each asks other nodes, which answer a limited number of questions. Beyond it what is
	// known is shown.
	lookRate, looksAtOnce = 10, 64
	// queryTime bounds a query, and a look.
	queryTime = 2 * time.Second
)

// Query runs a range query; that of a *region.Host.
type Query func(context.Context, region.RangeQuery) (region.RangeResult, error)

// edits keeps what edits have changed of the surface. One range query returns which regions of a sector exist, and how
// far their logs are applied. Only for squares with changes, which are tiles of level 0, the surface is asked for. Any
// goroutine may use it.
type edits struct {
	query   Query
	running chan struct{} // a slot for each query
	looks   *rate.Limiter
	flights singleflight.Group
	seed    maphash.Seed

	mu struct {
		sync.Mutex
		sectors *lru.Cache[sector, look]
		squares *lru.Cache[Key, square]
		version uint64
	}
}

type sector struct{ x, z int32 }

// look is what is known of a sector.
type look struct {
	at    time.Time
	hosts []Host // nil if no query has succeeded
}

// square is what is known of a square with founded land.
type square struct {
	regions uint64 // hash of the regions in it, and of how far their logs were applied
	version uint64 // grows when the surface changes
	surface []nodemsg.ChunkSurface
	digest  uint64 // of surface
	again   time.Time
}

func newEdits(query Query) *edits {
	e := &edits{query: query, running: make(chan struct{}, atOnce), looks: rate.NewLimiter(lookRate, looksAtOnce), seed: maphash.MakeSeed()}
	e.mu.sectors, e.mu.squares = newCache[sector, look](maxSectors), newCache[Key, square](maxSquares)
	return e
}

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	c, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // the size is positive
	}
	return c
}

// of returns what edits have changed on a tile, and a number that changes when that does.
func (e *edits) of(ctx context.Context, k Key) (changed []nodemsg.ChunkSurface, version uint64) {
	squares := k.squares()
	seen := make(map[sector]bool)
	for _, sq := range squares {
		at := sectorOf(sq)
		if !seen[at] {
			seen[at] = true
			e.look(ctx, at)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var h maphash.Hash
	h.SetSeed(e.seed)
	for _, sq := range squares {
		known, ok := e.mu.squares.Get(sq)
		if ok && len(known.surface) > 0 {
			changed = append(changed, known.surface...)
			maphash.WriteComparable(&h, [3]int64{int64(sq.X), int64(sq.Z), int64(known.version)}) //nolint:gosec // only hashed
		}
	}
	return changed, h.Sum64()
}

func sectorOf(square Key) sector {
	floor := func(v int32) int32 { return (v - ((v%sectorSide)+sectorSide)%sectorSide) / sectorSide }
	return sector{floor(square.X), floor(square.Z)}
}

// look brings what is known of a sector up to date, unless that was done just now.
func (e *edits) look(ctx context.Context, at sector) {
	e.mu.Lock()
	known, ok := e.mu.sectors.Get(at)
	e.mu.Unlock()
	if ok && time.Since(known.at) < sectorFor {
		return
	}
	done := e.flights.DoChan(at.String(), func() (any, error) {
		if !e.looks.Allow() {
			return nil, nil //nolint:nilnil // the result is in e.mu
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTime) // others wait for it, too
		defer cancel()
		e.refresh(ctx, at)
		return nil, nil //nolint:nilnil // what is known is the result
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// hosts returns the hosts of a sector, and false if nothing is known of it.
func (e *edits) hosts(ctx context.Context, at sector) ([]Host, bool) {
	e.look(ctx, at)
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.mu.sectors.Get(at)
	return known.hosts, ok && known.hosts != nil
}

func parseSector(name string) (at sector, err error) {
	const limit = maxTile / (sectorSide * BaseSide)
	if _, err := fmt.Sscanf(name, "%d.%d", &at.x, &at.z); err != nil || at.String() != name || min(at.x, at.z) < -limit || max(at.x, at.z) >= limit {
		return sector{}, fmt.Errorf("no sector is called %q", wire.Clip([]byte(name)))
	}
	return at, nil
}

// String returns the name of the sector in addresses.
func (s sector) String() string { return fmt.Sprintf("%d.%d", s.x, s.z) }

func (e *edits) refresh(ctx context.Context, at sector) {
	const side = sectorSide * BaseSide / grid.ChunkSize
	area := grid.Area{MinX: at.x * side, MinZ: at.z * side, MaxX: (at.x + 1) * side, MaxZ: (at.z + 1) * side}
	found, ok := e.ask(ctx, region.RangeQuery{Area: area, Time: queryTime})
	if ok {
		var wg errgroup.Group
		for _, sq := range e.due(at, found.Regions) {
			wg.Go(func() error {
				e.fetch(ctx, sq.key, sq.regions, sq.settled)
				return nil
			})
		}
		wg.Wait() //nolint:errcheck // none returns one
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := look{at: time.Now()}
	if ok {
		now.hosts = hostsIn(found)
	} else if before, known := e.mu.sectors.Peek(at); known {
		now.hosts = before.hosts
	}
	e.mu.sectors.Add(at, now)
}

func (e *edits) ask(ctx context.Context, q region.RangeQuery) (region.RangeResult, bool) {
	select {
	case e.running <- struct{}{}:
	case <-ctx.Done():
		return region.RangeResult{}, false
	}
	defer func() { <-e.running }()
	found, err := e.query(ctx, q)
	return found, err == nil
}

// dueSquare is a square to ask for. It is settled if its regions say how far their logs are applied.
type dueSquare struct {
	key     Key
	regions uint64
	settled bool
}

// due returns the squares of a sector whose regions have edits that are not known.
func (e *edits) due(at sector, regions []nodemsg.RangeRegion) (all []dueSquare) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for z := at.z * sectorSide; z < (at.z+1)*sectorSide; z++ {
		for x := at.x * sectorSide; x < (at.x+1)*sectorSide; x++ {
			sq := dueSquare{key: Key{X: x, Z: z}, settled: true}
			var h maphash.Hash
			h.SetSeed(e.seed)
			edited := false
			for _, g := range regions {
				if !g.Region.Cell.Area().Overlaps(sq.key.area()) {
					continue
				}
				edited = edited || g.Edits > 0 || g.Applied == 0
				sq.settled = sq.settled && g.Applied > 0
				maphash.WriteComparable(&h, [2]uint64{g.Region.ID, g.Applied})
			}
			sq.regions = h.Sum64()
			known, ok := e.mu.squares.Peek(sq.key)
			if (edited || ok) && (!ok || known.regions != sq.regions || time.Now().After(known.again)) {
				all = append(all, sq)
			}
		}
	}
	if len(all) > perLook { // in a busy sector all have their turn
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all[:min(len(all), perLook)]
}

// fetch asks for the surface of a square.
func (e *edits) fetch(ctx context.Context, sq Key, regions uint64, settled bool) {
	found, ok := e.ask(ctx, region.RangeQuery{Area: sq.area(), Surface: true, Time: queryTime})
	if !ok {
		return
	}
	complete := len(found.Missing) == 0
	var surface []nodemsg.ChunkSurface
	for _, g := range found.Regions {
		complete = complete && !g.Clipped
		for _, c := range g.Surface {
			if sq.area().Contains(c.Chunk) {
				surface = append(surface, c)
			}
		}
	}
	slices.SortFunc(surface, func(a, b nodemsg.ChunkSurface) int {
		return slices.Compare([]int32{a.Chunk.Z, a.Chunk.X}, []int32{b.Chunk.Z, b.Chunk.X})
	})
	digest := e.digest(surface)
	e.mu.Lock()
	defer e.mu.Unlock()
	before, known := e.mu.squares.Get(sq)
	if !complete && known && len(surface) < len(before.surface) {
		surface, digest = before.surface, before.digest // a node is away: what was there is better than nothing
	}
	now := square{regions: regions, surface: surface, digest: digest, version: before.version, again: time.Now().Add(closedFor)}
	if !known || before.digest != digest {
		e.mu.version++
		now.version = e.mu.version
	}
	switch {
	case !complete:
		now.again = time.Now()
	case settled:
		now.again = time.Now().Add(time.Hour)
	}
	e.mu.squares.Add(sq, now)
}

func (e *edits) digest(surface []nodemsg.ChunkSurface) uint64 {
	var h maphash.Hash
	h.SetSeed(e.seed)
	for _, c := range surface {
		maphash.WriteComparable(&h, c.Chunk)
		for _, p := range c.Points {
			maphash.WriteComparable(&h, p)
		}
	}
	return h.Sum64()
}
