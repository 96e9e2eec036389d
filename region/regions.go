package region

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/region/split"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// regions are the lands and the catalog that are open on this node: it opens, runs and closes them.
type regions struct {
	integrity.Node
	catalogs

	copies     int
	supervisor *placement.Supervisor
	facts      *integrity.Facts
	executor   *integrity.Executor
	bases      *integrity.Bases
	splitter   *split.Splitter
	autoSplit  *split.AutoSplit
	vacater    *split.Vacater
	disk       *integrity.Disk
	publisher  *placement.Publisher
	unlisted   func() bool                                       // see integrity.Incarnations
	create     func(group, id uint64, create func() error) error // see integrity.Incarnations.Create
	putBackTo  func() time.Time                                  // see integrity.Incarnations.Reached
	hibernate  func(*actor.Land)
	actors     *actor.Metrics
	metrics    *metrics
	loading    background.Shared[*actor.Land]
	joining    background.Shared[*actor.Land] // joins by invitation
	now        func() time.Time               // of the world
	// For tests: cpu measures how long a piece of a tick's work keeps a core busy, and probe is passed to the lands.
	cpu   func(work func()) time.Duration
	probe func(l *actor.Land, entry []byte)

	mu struct {
		sync.Mutex
		lands map[uint64]*actor.Land // loaded regions, by id
	}
}

// Loaded returns a loaded region, or nil.
func (r *regions) Loaded(id uint64) *actor.Land {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.lands[id]
}

// lands lists the loaded regions.
func (r *regions) lands() []*actor.Land {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.mu.lands))
}

// ledLands lists the loaded regions that this node leads.
func (r *regions) ledLands() []*actor.Land {
	return slices.DeleteFunc(r.lands(), func(l *actor.Land) bool { return !l.Raft().Status().Self })
}

// Led lists the groups that this node leads.
func (r *regions) Led() []placement.Group {
	return slices.DeleteFunc(r.open(), func(g placement.Group) bool { return !g.Raft.Status().Self })
}

// open lists the groups that are open on this node.
func (r *regions) open() []placement.Group {
	var all []placement.Group
	if c := r.Catalog(); c != nil {
		all = append(all, r.catalogGroup(c))
	}
	for _, l := range r.lands() {
		all = append(all, r.GroupOf(l))
	}
	return all
}

// GroupOf returns the group of a land for the supervisor.
func (r *regions) GroupOf(l *actor.Land) placement.Group {
	return placement.Group{ID: l.ID(), Key: r.Directory.Key(l.Cell()), Copies: r.copies, Raft: l.Raft(), Actor: l.Actor}
}

// Member returns a region of which this node is a member, possibly the catalog, or actor.ErrNotHere.
func (r *regions) Member(id uint64) (nodemsg.Region, error) {
	if id == world.CatalogID {
		return r.catalogRegion()
	}
	return r.Registry.Region(id)
}

// Delete deletes what this node stores of a closed region, possibly the catalog, that it is no longer a member of.
func (r *regions) Delete(info nodemsg.Region) error {
	if info.ID == world.CatalogID {
		return r.deleteCatalog()
	}
	writes, err := r.Deletion(info.ID)
	if err == nil {
		err = r.Replicas.Remove(info.ID, writes...)
	}
	if err != nil {
		return fmt.Errorf("delete region %d: %w", info.ID, err)
	}
	r.Registry.Forget(info.ID)
	r.supervisor.Forget(info.ID)
	if info.Leader == r.Self.Peer {
		r.Directory.Invalidate(info)
	}
	return nil
}

// memberships lists the regions that this node stores a copy of, the catalog first.
func (r *regions) memberships() ([]nodemsg.Region, error) {
	var all []nodemsg.Region
	if info, err := r.catalogRegion(); err == nil {
		all = append(all, info)
	} else if !errors.Is(err, actor.ErrNotHere) {
		return nil, err
	}
	infos, err := r.Registry.All()
	for _, info := range infos {
		has, failed := r.Replicas.Has(info.ID)
		if err = errors.Join(err, failed); has {
			all = append(all, info)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list regions: %w", err)
	}
	return all, nil
}

// catalogs is the catalog on a node that is a member of it.
type catalogs struct {
	copies       int // number of members of the catalog
	records      directory.Records
	probeCatalog func(entry []byte) // for tests
	reopen       chan struct{}      // wakes runCatalog when the catalog is released
	world        string             // its id
	proofs       world.Proofs
	policy       *policysync.Copy // which the catalog's acts make
	issuers      *integrity.Issuers

	catalogMu struct {
		sync.Mutex
		open *actor.Catalog // nil if this node is not a member of the catalog
	}
}

// Catalog returns the catalog if this node is a member of it, else nil.
func (c *catalogs) Catalog() *actor.Catalog {
	c.catalogMu.Lock()
	defer c.catalogMu.Unlock()
	return c.catalogMu.open
}

func (c *catalogs) setCatalog(open *actor.Catalog) {
	c.catalogMu.Lock()
	defer c.catalogMu.Unlock()
	c.catalogMu.open = open
}

// dropCatalog forgets a catalog that has ended, unless a later replica of it has joined since.
func (c *catalogs) dropCatalog(ended *actor.Catalog) {
	c.catalogMu.Lock()
	defer c.catalogMu.Unlock()
	if c.catalogMu.open == ended {
		c.catalogMu.open = nil
	}
}

// catalogReleased wakes runCatalog.
func (c *catalogs) catalogReleased() {
	select {
	case c.reopen <- struct{}{}:
	default:
	}
}

// catalogGroup returns the catalog as a group for the supervisor.
func (r *regions) catalogGroup(c *actor.Catalog) placement.Group {
	return placement.Group{ID: world.CatalogID, Key: grid.CatalogKey, Copies: r.catalogs.copies, Raft: c.Raft(), Actor: c.Actor}
}

// catalogRegion returns the catalog's members as this node knows them, or actor.ErrNotHere if it is not a member.
func (r *regions) catalogRegion() (nodemsg.Region, error) {
	if c := r.Catalog(); c != nil {
		return integrity.CatalogOf(c.Raft().Configuration()), nil
	}
	p, err := r.Replicas.Position(world.CatalogID)
	switch {
	case errors.Is(err, replica.ErrNotOpen), errors.Is(err, replica.ErrTombstone):
		return nodemsg.Region{}, actor.ErrNotHere
	case err != nil:
		return nodemsg.Region{}, fmt.Errorf("look up the catalog: %w", err)
	}
	return integrity.CatalogOf(p.Members), nil
}

func (r *regions) deleteCatalog() error {
	writes, err := r.Deletion(world.CatalogID)
	if err == nil {
		err = r.Replicas.Remove(world.CatalogID, writes...)
	}
	if err != nil {
		return fmt.Errorf("delete catalog: %w", err)
	}
	return nil
}
