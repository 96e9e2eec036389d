package region

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// regions is the table of the regions and the catalog that are open on this node. It knows none of the parts that use
// them, so it is made before them: who wants a region that is not open has the opener, which is made after them, open
// it. Any goroutine may call its methods.
type regions struct {
	self     string
	replicas *replica.Host
	registry *directory.Registry
	tasks    *background.Tasks
	metrics  *metrics

	loading  background.Shared[*actor.Land]
	openings chan opening  // what the opener is to open
	reopen   chan struct{} // wakes the opener when the catalog is released

	mu struct {
		sync.Mutex
		lands   map[uint64]*actor.Land // by id
		catalog *actor.Catalog         // nil if this node is not a member of the catalog, or that is not open
	}
}

// opening is a question to the opener: to open a region, or the catalog.
type opening struct {
	catalog bool
	region  nodemsg.Hello     // unless it is the catalog
	answer  chan<- openResult // has room
}

type openResult struct {
	land *actor.Land // nil for the catalog
	err  error
}

func newRegions(self string, replicas *replica.Host, registry *directory.Registry, tasks *background.Tasks, m *metrics) *regions {
	r := &regions{
		self: self, replicas: replicas, registry: registry, tasks: tasks, metrics: m,
		openings: make(chan opening), reopen: make(chan struct{}, 1),
	}
	r.mu.lands = make(map[uint64]*actor.Land)
	return r
}

// Loaded returns a region that is open, or nil.
func (r *regions) Loaded(id uint64) *actor.Land {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.lands[id]
}

// Catalog returns the catalog if it is open on this node, else nil.
func (r *regions) Catalog() *actor.Catalog {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.catalog
}

// lands lists the regions that are open.
func (r *regions) lands() []*actor.Land {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.mu.lands))
}

// ledLands lists the open regions that this node leads.
func (r *regions) ledLands() []*actor.Land {
	return slices.DeleteFunc(r.lands(), func(l *actor.Land) bool { return !l.Raft().Status().Self })
}

// Groups lists the groups that are open on this node.
func (r *regions) Groups() []placement.Group {
	var all []placement.Group
	if c := r.Catalog(); c != nil {
		all = append(all, catalogGroup(c))
	}
	for _, l := range r.lands() {
		all = append(all, placement.GroupOf(l))
	}
	return all
}

// Led lists the groups that this node leads.
func (r *regions) Led() []placement.Group {
	return slices.DeleteFunc(r.Groups(), func(g placement.Group) bool { return !g.Raft.Status().Self })
}

// catalogGroup returns the catalog as a group for the supervisor.
func catalogGroup(c *actor.Catalog) placement.Group {
	return placement.Group{ID: world.CatalogID, Raft: c.Raft(), Actor: c.Actor}
}

// Open returns a region's land and has it loaded first if necessary. The error is an integrity.Refusal if its copy here
// is not to be opened.
func (r *regions) Open(ctx context.Context, id uint64, cell grid.Cell) (*actor.Land, error) {
	hello := nodemsg.Hello{Region: id, Cell: cell}
	l := r.Loaded(id)
	if l == nil {
		var err error
		l, err = r.loading.Do(ctx, r.tasks, helloKey(hello), func(ctx context.Context) (*actor.Land, error) { return r.ask(ctx, opening{region: hello}) })
		if err != nil {
			return nil, err
		}
	}
	if l.Cell() != cell {
		return nil, actor.ErrNotHere
	}
	return l, nil
}

// reopenCatalog has the catalog opened again, whose copy is used after all.
func (r *regions) reopenCatalog(ctx context.Context) error {
	_, err := r.ask(ctx, opening{catalog: true})
	return err
}

// ask has the opener open something. Its land is nil for the catalog.
func (r *regions) ask(ctx context.Context, w opening) (*actor.Land, error) {
	answer := make(chan openResult, 1)
	w.answer = answer
	select {
	case r.openings <- w:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := <-answer // it comes in any case, and until then nobody else asks for that region
	return done.land, done.err
}

// helloKey identifies what a gateway asks for.
func helloKey(hello nodemsg.Hello) string { return fmt.Sprintf("%d %v", hello.Region, hello.Cell) }

// add adds a land that is open now.
func (r *regions) add(l *actor.Land) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.lands[l.ID()] = l
	r.metrics.loaded.Inc()
}

// remove removes a land that has ended, and only then finishes it, so that callers waiting for that can load the region
// again.
func (r *regions) remove(l *actor.Land) {
	r.mu.Lock()
	delete(r.mu.lands, l.ID())
	r.mu.Unlock()
	r.metrics.loaded.Dec()
	l.Finish()
}

func (r *regions) setCatalog(open *actor.Catalog) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.catalog = open
}

// dropCatalog forgets a catalog that has ended, unless a later replica of it has joined since.
func (r *regions) dropCatalog(ended *actor.Catalog) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.catalog == ended {
		r.mu.catalog = nil
	}
}

// catalogReleased has the catalog opened again if it waits after a failure.
func (r *regions) catalogReleased() {
	select {
	case r.reopen <- struct{}{}:
	default:
	}
}

// Member returns a region of which this node is a member, possibly the catalog, or actor.ErrNotHere.
func (r *regions) Member(id uint64) (nodemsg.Region, error) {
	if id == world.CatalogID {
		return r.catalogRegion()
	}
	return r.registry.Region(id)
}

// catalogRegion returns the catalog's members as this node knows them, or actor.ErrNotHere if it is not a member.
func (r *regions) catalogRegion() (nodemsg.Region, error) {
	if c := r.Catalog(); c != nil {
		return integrity.CatalogOf(c.Raft().Configuration()), nil
	}
	p, err := r.replicas.Position(world.CatalogID)
	switch {
	case errors.Is(err, replica.ErrNotOpen), errors.Is(err, replica.ErrTombstone):
		return nodemsg.Region{}, actor.ErrNotHere
	case err != nil:
		return nodemsg.Region{}, fmt.Errorf("look up the catalog: %w", err)
	}
	return integrity.CatalogOf(p.Members), nil
}

// catalogLeader returns the peer that leads the catalog, as its group on this node sees it now; "" if there is none.
func (r *regions) catalogLeader() string {
	if c := r.Catalog(); c != nil {
		return c.Raft().Status().Leader
	}
	return ""
}

// memberships lists the regions that this node stores a copy of, the catalog first.
func (r *regions) memberships() ([]nodemsg.Region, error) {
	var all []nodemsg.Region
	if info, err := r.catalogRegion(); err == nil {
		all = append(all, info)
	} else if !errors.Is(err, actor.ErrNotHere) {
		return nil, err
	}
	infos, err := r.registry.All()
	for _, info := range infos {
		has, failed := r.replicas.Has(info.ID)
		if err = errors.Join(err, failed); has {
			all = append(all, info)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list regions: %w", err)
	}
	return all, nil
}
