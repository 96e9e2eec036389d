// Package directory locates regions, and founds those that do not exist yet. It also keeps the list of the regions that
// this node is a member of (Registry), and knows which other nodes are alive, leave, or did not answer lately
// (Detector). A Detector asks nothing by itself: package region/placement calls Refresh in rounds.
//
// Any goroutine may use a Directory, a Registry and a Detector.
package directory

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/internal/metric"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// maxRoutes bounds the cache of known regions, at about 300 bytes each.
	maxRoutes = 16384
	// Candidates is the number of nearest nodes that are checked for liveness.
	Candidates = 8

	// lookTime bounds a lookup by a member of the catalog, and a leader's introduction to another one. It bounds how
	// long, after a partition has healed, a caller still waits for a question that was sent across it.
	lookTime = 2 * time.Second
)

// Records is the part of the DHT that the directory uses; implemented by *dht.DHT. Records are hints, for when the
// catalog does not answer.
type Records interface {
	Region(ctx context.Context, cell grid.Cell) (nodemsg.Region, error)
	PutRegion(ctx context.Context, region nodemsg.Region) error
	Catalog(ctx context.Context) (nodemsg.Region, error)
	PutCatalog(ctx context.Context, region nodemsg.Region) error
	// NearestKnown is Nearest computed from local knowledge only, as if the nodes in also were known, too.
	NearestKnown(key string, n int, also ...string) []string
	// Nearest returns the peers nearest to the key, nearest first. This node is included, and so are nodes that may be
	// down.
	Nearest(ctx context.Context, key string, n int) ([]string, error)
	// Operator returns who runs a node; "" if that is not known.
	Operator(peer string) string
}

// Options configure a Directory. All fields are required.
type Options struct {
	Self       nodemsg.Member
	Placement  grid.Placement // maps cells to keys
	Copies     int            // least number of members of a region, at least 1: see membership.Choose
	Records    Records
	Questions  transport.Questions
	Detector   *Detector
	Tasks      *background.Tasks
	Catalog    func() *actor.Catalog           // the catalog if this node is a member of it, else nil
	Hung       func() bool                     // reports whether this node's disk does not answer: then its copy of the catalog, if it has one, may not either
	OwnCatalog func() nodemsg.RegionStatus     // of this node's copy of the catalog
	Vouched    func(nodemsg.RegionStatus) bool // reports whether an issuer has signed a status of the catalog
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

func newLocated(r prometheus.Registerer) *prometheus.CounterVec {
	located := metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_region_lookups_total",
		Help: "Lookups of the region of a chunk, by what answered; remembered and unconfirmed while the catalog does not.",
	}, metric.Values("source", fromCache, fromCatalog, fromFounding, fromMemory, fromHint))
	r.MustRegister(located)
	return located
}

// Directory locates regions, and founds those that do not exist yet. It follows the GENERATE procedure of VoxelPopuli
// §3.1.3, with one rule added: only the catalog founds a cell, so that no two nodes generate the same land. Its methods
// may be called from any goroutine.
type Directory struct {
	Options

	known   *lru.Cache[grid.Cell, nodemsg.Region] // the newest that nodes have said of each cell: hints
	listed  listings                              // who may be followed: what the catalog has said
	located *prometheus.CounterVec                // by source: see locate.go
	flights background.Shared[nodemsg.Region]     // one question at a time for each chunk, one founding for each cell

	silent atomic.Pointer[time.Time] // when the catalog last did not answer about a route; nil: it has answered since

	mu struct {
		sync.Mutex
		keys    *grid.Keys
		catalog nodemsg.Region // last known; ID 0 while unknown
	}
}

// New returns a directory.
func New(o Options) *Directory {
	d := &Directory{
		Options: o, located: newLocated(o.Registerer),
		known: newCache[nodemsg.Region](maxRoutes), listed: listings{newCache[listing](maxRoutes)},
	}
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

// ErrNotFounded is returned if a region is not founded yet.
var ErrNotFounded = actor.ErrNotFounded

// CacheRoute stores a route and returns it. If the region is split, its children are cached as they were then, unless
// they are known better.
func (d *Directory) CacheRoute(info nodemsg.Region) nodemsg.Region {
	for cell := info.Cell; cell.Label.Len() > grid.FoundingLabel; {
		cell = cell.Parent()
		if above, ok := d.known.Peek(cell); !ok || above.Split == 0 {
			d.known.Add(cell, nodemsg.Region{Cell: cell, Split: unknownSplit})
		}
	}
	d.known.Add(info.Cell, info)
	if info.Split != 0 {
		for _, child := range world.ChildrenOf(info) {
			if known, ok := d.known.Peek(child.Cell); !ok || known.ID != child.ID {
				d.known.Add(child.Cell, child)
			}
		}
	}
	return info
}

// CacheOwn caches a region that this node leads, as its own log has it: nobody need confirm that.
func (d *Directory) CacheOwn(info nodemsg.Region) {
	if before, ok := d.listed.Peek(info.Cell); !ok || !before.region.Newer(info) {
		d.listed.put(info)
	}
	d.CacheRoute(info)
}

// unknownSplit is the split of a cell of which only a part is known.
const unknownSplit = 1

// CacheSplit caches that a region was split by the entry at the log index, as said by a node that was taken for a
// member. A single chunk is not split.
func (d *Directory) CacheSplit(info nodemsg.Region, index uint64) {
	if info.Cell.Label.Len() == grid.MaxLabel {
		d.Invalidate(info)
		return
	}
	info.Split = index
	d.CacheRoute(info)
	d.listed.putChildren(info, index)
	for _, child := range world.ChildrenOf(info) { // a route that the catalog cannot confirm would lead back to the whole
		if known, ok := d.known.Peek(child.Cell); ok && known.ID == child.ID {
			if _, _, confirmed := d.listed.last(known); !confirmed || known.Split != 0 {
				d.known.Add(child.Cell, child)
			}
		}
	}
}

// AddHint caches a route that arrived unasked, unless a newer one is known. A wrong hint costs a question to the
// catalog. A hint about a part of land that is known as a whole does not count: it may be of a part that was merged
// since, where only an old copy is left, in which one would wait for a leader. If the land was split, its leader says
// so.
func (d *Directory) AddHint(info nodemsg.Region) {
	if info.Cell.Label.Len() < grid.FoundingLabel || info.Leader == "" {
		return
	}
	for cell := info.Cell; cell.Label.Len() > grid.FoundingLabel; {
		cell = cell.Parent()
		if whole, ok := d.known.Peek(cell); ok && whole.Split == 0 {
			return
		}
	}
	if known, ok := d.known.Peek(info.Cell); ok && !info.Supersedes(known) {
		return
	}
	d.CacheRoute(info)
}

// LeaderMoved caches the leader that a member of the region has named.
func (d *Directory) LeaderMoved(info nodemsg.Region, leader string) {
	known, ok := d.known.Peek(info.Cell)
	if !ok || known.ID != info.ID {
		known = info
	}
	known.Leader = leader
	d.CacheRoute(known)
}

// Invalidate drops a route that was wrong, unless another one is cached meanwhile. The catalog is asked again about the
// cell.
func (d *Directory) Invalidate(info nodemsg.Region) {
	d.listed.expire(info.Cell)
	known, ok := d.known.Peek(info.Cell)
	if ok && (known.ID != info.ID || known.Leader != info.Leader) {
		return
	}
	d.known.Remove(info.Cell)
}

// Known returns the cached route of the region that covers the chunk.
func (d *Directory) Known(pos grid.ChunkPos) (nodemsg.Region, bool) {
	_, info, ok := d.cached(pos)
	return info, ok
}

// cached returns the cached route of the region that covers the chunk. If it is not cached, cell is the smallest cell
// around the chunk that may be a region's, as far as is known.
func (d *Directory) cached(pos grid.ChunkPos) (cell grid.Cell, info nodemsg.Region, ok bool) {
	for n := grid.FoundingLabel; ; n++ {
		cell = grid.CellAt(pos, n)
		if info, ok = d.known.Get(cell); !ok || info.Split == 0 || n == grid.MaxLabel {
			return cell, info, ok
		}
	}
}

// Key returns the key whose nearest nodes should be the members of the cell's region: that of the cell's home.
func (d *Directory) Key(cell grid.Cell) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.keys.Key(d.Placement.Home(cell))
}
