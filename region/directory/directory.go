// Package directory locates regions, and founds those that do not exist yet. It also keeps the list of the regions that this node
// is a member of (Registry). Any goroutine may use a Directory and a Registry.
//
// Only package region and its subpackages import it.
package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// maxRoutes bounds the cache of known regions, at about 300 bytes each.
	maxRoutes = 16384
	// maxInvalidated bounds the set of cells whose cached routes were wrong.
	maxInvalidated = 1024
	// Candidates is the number of nearest nodes that are checked for liveness.
	Candidates = 8

	// lookTime bounds a lookup by a member of the catalog. hintTime bounds the time that neighbours and the DHT together have to
	// locate a region. Both bound how long, after a partition has healed, a caller still waits for a question that was sent
	// across it.
	lookTime = 2 * time.Second
	hintTime = 3 * time.Second
)

// Records is the part of the DHT that the directory uses; implemented by *dht.DHT. Records are hints that save a walk; the
// catalog's log is the authority.
type Records interface {
	Region(ctx context.Context, cell grid.Cell) (nodemsg.Region, error)
	PutRegion(ctx context.Context, region nodemsg.Region) error
	Catalog(ctx context.Context) (nodemsg.Region, error)
	PutCatalog(ctx context.Context, region nodemsg.Region) error
	// NearestKnown is Nearest computed from local knowledge only, as if the nodes in also were known, too.
	NearestKnown(key string, n int, also ...string) []string
	// Nearest returns the peers nearest to the key, nearest first. This node is included, and so are nodes that may be down.
	Nearest(ctx context.Context, key string, n int) ([]string, error)
}

// Options configure a Directory. All fields are required.
type Options struct {
	Self       nodemsg.Member
	Placement  grid.Placement // maps cells to keys
	Copies     int            // number of members of a region, at least 1
	Records    Records
	Questions  transport.Questions
	Detector   *failuredetector.Detector
	Tasks      *background.Tasks
	Catalog    func() *actor.Catalog // the catalog if this node is a member of it, else nil
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

func newLocated(r prometheus.Registerer) *prometheus.CounterVec {
	located := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_locate_total",
		Help: "Searches for the region of a chunk, by the source that knew it.",
	}, []string{"source"})
	r.MustRegister(located)
	return located
}

// Directory locates regions, and founds those that do not exist yet. It follows the GENERATE procedure of VoxelPopuli §3.1.3,
// with one rule added: only the catalog founds a cell, so that no two nodes generate the same land. Its methods may be called
// from any goroutine.
type Directory struct {
	Options

	known       *lru.Cache[grid.Cell, nodemsg.Region]
	invalidated *lru.Cache[grid.Cell, struct{}]   // cells whose route was wrong: hints are ignored for them
	located     *prometheus.CounterVec            // by source: cache, neighbour, dht, catalog, founded
	flights     background.Shared[nodemsg.Region] // one search per cell at a time

	mu struct {
		sync.Mutex
		keys    *grid.Keys
		catalog nodemsg.Region // last known; ID 0 while unknown
	}
}

// New returns a directory.
func New(o Options) *Directory {
	d := &Directory{Options: o, located: newLocated(o.Registerer), known: newCache[nodemsg.Region](maxRoutes), invalidated: newCache[struct{}](maxInvalidated)}
	d.mu.keys = grid.NewKeys(o.Placement)
	return d
}

func newCache[V any](size int) *lru.Cache[grid.Cell, V] {
	cache, err := lru.New[grid.Cell, V](size)
	if err != nil {
		panic(err) // cannot happen: the sizes are positive constants
	}
	return cache
}

// Locate returns the region that covers the chunk. It asks the nearest source first: the cache, the leaders of neighbouring
// cells, the DHT, then the catalog. If the region does not exist, Locate founds it.
func (d *Directory) Locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	if !pos.Valid() {
		return nodemsg.Region{}, fmt.Errorf("chunk %v lies outside of the world", pos)
	}
	cell := grid.CellAt(pos, grid.FoundingLabel)
	if info, ok := d.known.Get(cell); ok {
		d.count("cache")
		return info, nil
	}
	info, err := d.flights.Do(ctx, d.Tasks, cell.String(), func(ctx context.Context) (nodemsg.Region, error) {
		return d.search(ctx, cell, pos)
	})
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("locate chunk %v: %w", pos, err)
	}
	return info, nil
}

func (d *Directory) search(ctx context.Context, cell grid.Cell, pos grid.ChunkPos) (nodemsg.Region, error) {
	if !d.invalidated.Contains(cell) {
		if info, ok := d.fromHints(ctx, cell, pos); ok {
			return d.CacheRoute(info), nil
		}
	}
	info, err := d.FromCatalog(ctx, pos)
	if err == nil {
		d.count("catalog")
		d.invalidated.Remove(cell)
		return d.CacheRoute(info), nil
	}
	if !errors.Is(err, ErrNotFounded) {
		return nodemsg.Region{}, err
	}
	if info, err = d.found(ctx, cell); err != nil {
		return nodemsg.Region{}, err
	}
	d.count("founded")
	d.invalidated.Remove(cell)
	return d.CacheRoute(info), nil
}

// fromHints asks the neighbours and the DHT, which usually have the answer and are nearer than the catalog.
func (d *Directory) fromHints(ctx context.Context, cell grid.Cell, pos grid.ChunkPos) (nodemsg.Region, bool) {
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	if info, ok := d.fromNeighbours(ctx, cell, pos); ok {
		d.count("neighbour")
		return info, true
	}
	if info, err := d.Records.Region(ctx, cell); err == nil && usable(info, cell) {
		d.count("dht")
		return info, true
	}
	return nodemsg.Region{}, false
}

// usable reports whether a hint is about the cell and names a leader.
func usable(info nodemsg.Region, cell grid.Cell) bool { return info.Cell == cell && info.Leader != "" }

// fromNeighbours asks those leaders of adjacent cells that this node knows: the leader of a cell keeps routes to its neighbours
// (Walkad §IV-B). They get half of hintTime.
func (d *Directory) fromNeighbours(ctx context.Context, cell grid.Cell, pos grid.ChunkPos) (nodemsg.Region, bool) {
	ctx, cancel := context.WithTimeout(ctx, hintTime/2)
	defer cancel()
	asked := map[string]bool{d.Self.Peer: true}
	for _, next := range cell.Adjacent() {
		info, ok := d.known.Peek(next)
		if !ok || asked[info.Leader] || len(asked) > 2 || d.Detector.Suspected(info.Leader) { // two neighbours at most
			continue
		}
		asked[info.Leader] = true
		answer, err := d.Questions.Ask(ctx, info.Leader, nodemsg.Question{Locate: &nodemsg.Locate{Chunk: pos}})
		if err == nil && answer.Region != nil && usable(*answer.Region, cell) {
			return *answer.Region, true
		}
	}
	return nodemsg.Region{}, false
}

// ErrNotFounded is returned if a region is not founded yet.
var ErrNotFounded = actor.ErrNotFounded

// FromCatalog asks the catalog. It returns ErrNotFounded if there is no such region.
func (d *Directory) FromCatalog(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	info, err := d.consult(ctx, nodemsg.Question{Authority: &nodemsg.Locate{Chunk: pos}},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Locate(ctx, pos) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	return checkCell(info, grid.CellAt(pos, grid.FoundingLabel))
}

// ByID asks the catalog for a region by its id. It returns ErrNotFounded if there is none.
func (d *Directory) ByID(ctx context.Context, id uint64) (nodemsg.Region, error) {
	info, err := d.consult(ctx, nodemsg.Question{Authority: &nodemsg.Locate{ID: id}},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Find(ctx, id) })
	if err == nil && info.ID != id {
		err = fmt.Errorf("the catalog's reply does not match the question about region %d", id)
	}
	return info, err
}

// checkCell returns the region of the catalog's answer after checking that it is about the cell.
func checkCell(info nodemsg.Region, cell grid.Cell) (nodemsg.Region, error) {
	if !usable(info, cell) {
		return nodemsg.Region{}, fmt.Errorf("the catalog's reply does not match the question about cell %v", cell)
	}
	return info, nil
}

// found picks the nearest live nodes to the cell's key and asks the catalog to found the cell there.
func (d *Directory) found(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	members, err := d.nearestAlive(ctx, cell)
	if err != nil {
		return nodemsg.Region{}, err
	}
	request := nodemsg.Found{Cell: cell, Members: members}
	info, err := d.consult(ctx, nodemsg.Question{Found: &request},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Found(ctx, request) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	return checkCell(info, cell)
}

// ReportMoved reports a region's members to the catalog and returns the region as the catalog then has it.
func (d *Directory) ReportMoved(ctx context.Context, info nodemsg.Region) (nodemsg.Region, error) {
	known, err := d.consult(ctx, nodemsg.Question{Moved: &info},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Moved(ctx, info) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	return checkCell(known, info.Cell)
}

// nearestAlive asks the nodes nearest to the cell's key, nearest first, until enough have answered.
func (d *Directory) nearestAlive(ctx context.Context, cell grid.Cell) ([]nodemsg.Member, error) {
	peers, err := d.Records.Nearest(ctx, d.Key(cell), Candidates)
	if err != nil {
		return nil, fmt.Errorf("find nodes near %v: %w", cell, err)
	}
	var members []nodemsg.Member
	for _, peer := range peers {
		if len(members) == d.Copies {
			break
		}
		if peer == d.Self.Peer {
			members = append(members, d.Self)
			continue
		}
		member, err := d.Questions.Describe(ctx, peer)
		if err != nil {
			d.Logger.Debug("node skipped", "peer", peer, "error", err)
			continue
		}
		members = append(members, member)
	}
	if len(members) == 0 {
		members = append(members, d.Self)
	}
	return members, nil
}

// CacheRoute stores a route and returns it.
func (d *Directory) CacheRoute(info nodemsg.Region) nodemsg.Region {
	d.known.Add(info.Cell, info)
	return info
}

// AddHint caches a route that arrived unasked, unless a newer one is known. A wrong hint costs one attempt; then the catalog is
// asked.
func (d *Directory) AddHint(info nodemsg.Region) {
	if info.Cell.Label.Len() != grid.FoundingLabel || info.Leader == "" {
		return
	}
	known, ok := d.known.Peek(info.Cell)
	if ok && cmp.Or(cmp.Compare(info.Epoch, known.Epoch), cmp.Compare(info.Term, known.Term)) <= 0 {
		return
	}
	d.known.Add(info.Cell, info)
}

// LeaderMoved caches the leader that a member of the region has named.
func (d *Directory) LeaderMoved(info nodemsg.Region, leader string) {
	known, ok := d.known.Peek(info.Cell)
	if !ok || known.ID != info.ID {
		known = info
	}
	known.Leader = leader
	d.known.Add(info.Cell, known)
}

// Invalidate drops a route that was wrong, unless another one is cached meanwhile. The next search for the cell asks the catalog,
// because neighbours and the DHT would only return the same route again.
func (d *Directory) Invalidate(info nodemsg.Region) {
	known, ok := d.known.Peek(info.Cell)
	if ok && (known.ID != info.ID || known.Leader != info.Leader) {
		return
	}
	d.known.Remove(info.Cell)
	d.invalidated.Add(info.Cell, struct{}{})
}

func (d *Directory) count(source string) { d.located.WithLabelValues(source).Inc() }

// Introduce announces the leader of this cell to the leaders of adjacent cells and caches the routes to them (Walkad §IV-B,
// coordinator selection, steps 3 and 4).
func (d *Directory) Introduce(ctx context.Context, info nodemsg.Region) {
	for _, next := range info.Cell.Adjacent() {
		there, ok := d.known.Peek(next)
		if !ok {
			var err error
			if there, err = d.Records.Region(ctx, next); err != nil || !usable(there, next) {
				continue
			}
			d.AddHint(there)
		}
		if there.Leader == d.Self.Peer {
			continue
		}
		if _, err := d.Questions.Ask(ctx, there.Leader, nodemsg.Question{Introduce: &info}); err != nil {
			d.Logger.Debug("introduce region", "peer", there.Leader, "error", err)
		}
	}
}

// Known returns the cached route of a cell.
func (d *Directory) Known(cell grid.Cell) (nodemsg.Region, bool) { return d.known.Peek(cell) }

// Key returns the cell's key in the DHT.
func (d *Directory) Key(cell grid.Cell) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.keys.Key(cell)
}
