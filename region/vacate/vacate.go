// Package vacate gives up regions on which nothing was ever built, and which nobody has watched for long
// (docs/adr/0097).
//
// A region ends by an entry in its own log, which its leader proposes, and which has an effect only if the region is
// empty at that place. Then most of its members confirm to the catalog that it has ended, the catalog removes it, and
// each member deletes its copy. When nobody watches a region is a matter of thrift only, so this node's own clock
// decides: whoever comes a moment too late finds land that is founded anew.
//
// Only package region imports it.
package vacate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// emptyFor is how long nobody must have watched a region, as far as this node has seen since its start.
	emptyFor = 24 * time.Hour
	// lookEvery is how often the regions of this node are looked through.
	lookEvery = 5 * time.Minute
	// vacateTime bounds the end of one region: it may have to be opened, and to elect a leader.
	vacateTime = 30 * time.Second
	// membersTime bounds the time that the members have to catch up, and membersPause is the time between two looks.
	membersTime  = 10 * time.Second
	membersPause = 250 * time.Millisecond
	// resolveTime bounds one attempt to have the catalog remove a region.
	resolveTime = 10 * time.Second
	// firstRadius is how far around the places where players begin land is kept, in chunks: as far as they see.
	firstRadius = 5
)

// ErrOutdated is returned while a node that is alive does not understand that regions are given up.
var ErrOutdated = errors.New("a node runs an older version of voxeld, or one has not said which")

// Options are what a Loop needs. All fields but After and Spawn are required.
type Options struct {
	integrity.Node
	After      time.Duration // how long nobody must have watched a region; 0: emptyFor
	Spawn      grid.ChunkPos // the land around it is kept
	Policy     *policysync.Copy
	Supervisor *placement.Supervisor
	// Lead opens a region of which this node is a member, and has it led by this node.
	Lead func(ctx context.Context, id uint64) (*actor.Land, error)
	// Unusable reports whether the copy here is quarantined or damaged.
	Unusable func(id uint64) bool
	// Here has the catalog, which this node leads, remove a region, as this node reports that it was given up.
	Here        func(ctx context.Context, c *actor.Catalog, vacated nodemsg.Vacated) (nodemsg.Region, error)
	AskStatuses integrity.AskStatuses
	// OpenAt has a member open a region, as a gateway does that leaves again at once.
	OpenAt func(ctx context.Context, peer string, info nodemsg.Region) error
}

// Loop gives up regions that this node is responsible for. Any goroutine may call its methods.
type Loop struct {
	Options

	swept     int      // the copy that is looked up next, among those in the order of their ids; of Run's goroutine
	listed    uint64   // the region up to which the catalog was looked through; likewise
	resolving sync.Map // regions that were given up and are being removed: id → nil

	mu struct {
		sync.Mutex
		quiet map[uint64]time.Time // since when nobody watches a region that this node is responsible for, as far as is known
	}
}

// New returns a loop.
func New(o Options) *Loop {
	if o.After == 0 {
		o.After = emptyFor
	}
	l := &Loop{Options: o}
	l.mu.quiet = make(map[uint64]time.Time)
	return l
}

// Run gives up regions, and deletes copies of those that were given up, until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	ticker := time.NewTicker(min(lookEvery, l.After))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		regions, err := l.Registry.All()
		if err != nil {
			l.Logger.Warn("regions to be given up not looked for", "error", err)
		}
		l.sweep(ctx, regions)
		l.look(ctx, regions)
		l.openUnopened(ctx)
	}
}

// Watched records that a gateway watches a region.
func (l *Loop) Watched(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.quiet, id)
}

// look gives up the regions that nobody has watched for long enough, one after the other.
func (l *Loop) look(ctx context.Context, regions []nodemsg.Region) {
	for _, info := range l.due(ctx, regions) {
		err := l.Vacate(ctx, info.ID)
		if ctx.Err() != nil || errors.Is(err, ErrOutdated) {
			return
		}
		if err != nil {
			l.Logger.Debug("region not given up", "region", info.ID, "cell", info.Cell.String(), "error", err)
			l.Watched(info.ID) // it is tried again after as long
		}
	}
}

// due lists the regions that nobody has watched for long enough.
func (l *Loop) due(ctx context.Context, regions []nodemsg.Region) (due []nodemsg.Region) {
	candidates := make(map[uint64]nodemsg.Region)
	for _, info := range regions {
		if info.Cell.Label.Len() == grid.FoundingLabel && l.responsible(ctx, info) && !l.Keeps(info.Cell) {
			candidates[info.ID] = info
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.mu.quiet {
		if _, ok := candidates[id]; !ok {
			delete(l.mu.quiet, id)
		}
	}
	for id, info := range candidates {
		since, known := l.mu.quiet[id]
		switch {
		case !known:
			l.mu.quiet[id] = time.Now()
		case time.Since(since) >= l.After:
			due = append(due, info)
		}
	}
	return due
}

// responsible reports whether this node is to give up a region: it leads it, or has led it before it was closed, and
// nothing was built there.
func (l *Loop) responsible(ctx context.Context, info nodemsg.Region) bool {
	if l.Unusable(info.ID) {
		return false
	}
	if land := l.Regions.Loaded(info.ID); land != nil {
		watched, empty, err := actor.UseOf(ctx, land)
		return err == nil && !watched && empty && land.Raft().Status().Self
	}
	if !l.Supervisor.Responsible(info) {
		return false
	}
	empty, err := world.EmptyIn(l.Storage.Keys, info.ID)
	return err == nil && empty
}

// Keeps reports whether the land of a cell is kept although nothing was built there: players begin near it, or it is
// claimed.
func (l *Loop) Keeps(cell grid.Cell) bool {
	area := cell.Area()
	claimed, first := false, []grid.ChunkPos{{}, l.Spawn} // the released client begins in the first one
	l.Policy.Read(func(p *policy.State) {
		if spawn := p.Settings().Spawn; spawn != nil {
			first = append(first, spawn.Chunk())
		}
		half := (area.MaxX - area.MinX) / 2
		claimed = len(p.Claims().Near(grid.ChunkPos{X: area.MinX + half, Z: area.MinZ + half}, half, 1)) > 0
	})
	for _, at := range first {
		near := grid.Area{MinX: at.X - firstRadius, MinZ: at.Z - firstRadius, MaxX: at.X + firstRadius + 1, MaxZ: at.Z + firstRadius + 1}
		if near.Overlaps(area) {
			return true
		}
	}
	return claimed
}

// Vacate gives up a region of which this node is a member, unless it is watched, or something was built there. It waits
// until the copy here is deleted.
func (l *Loop) Vacate(ctx context.Context, id uint64) error {
	ctx, cancel := context.WithTimeout(ctx, vacateTime)
	defer cancel()
	if !l.Supervisor.BeginChange(id) {
		return fmt.Errorf("vacate region %d: its members are being changed", id)
	}
	land, err := l.propose(ctx, id)
	l.Supervisor.EndChange(id)
	if err != nil {
		return fmt.Errorf("vacate region %d: %w", id, err)
	}
	actor.ResolveFreeze(land)
	select {
	case <-land.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("vacate region %d: the catalog still lists it: %w", id, ctx.Err())
	}
}

// propose has the region end. All members that are alive must be up to date, and every node must understand the entry:
// one that does not would go on with the region.
func (l *Loop) propose(ctx context.Context, id uint64) (*actor.Land, error) {
	land, err := l.Lead(ctx, id)
	if err != nil {
		return nil, err
	}
	info, err := land.Info(ctx)
	if err != nil {
		return nil, err
	}
	catalog, err := l.Directory.CatalogMembers(ctx)
	if err != nil {
		return nil, err
	}
	for _, members := range [][]nodemsg.Member{info.Members, catalog.Members} {
		if !l.Detector.Understand(l.Self.Peer, members, nodemsg.VersionVacated) {
			return nil, ErrOutdated
		}
	}
	if err := l.awaitMembers(ctx, land); err != nil {
		return nil, err
	}
	return land, actor.ProposeVacate(ctx, land)
}

// awaitMembers waits until all members that are alive have all of the log: the region may just have been opened.
func (l *Loop) awaitMembers(ctx context.Context, land *actor.Land) error {
	ctx, cancel := context.WithTimeout(ctx, membersTime)
	defer cancel()
	for {
		_, err := l.Supervisor.UpToDate(ctx, l.Regions.GroupOf(land), land.Raft().Status())
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(membersPause):
		}
	}
}

// Resolve has the catalog remove a region that was given up, if this node leads it, and ends and deletes the copy here
// when the catalog does not list the region any more.
func (l *Loop) Resolve(land *actor.Land, leads bool) {
	if _, busy := l.resolving.LoadOrStore(land.ID(), nil); busy {
		return
	}
	started := l.Tasks.Start(func(ctx context.Context) {
		defer l.resolving.Delete(land.ID())
		ctx, cancel := context.WithTimeout(ctx, resolveTime)
		defer cancel()
		if err := l.resolve(ctx, land, leads); err != nil {
			l.Logger.Debug("region that was given up not removed yet", "region", land.ID(), "cell", land.Cell().String(), "error", err)
		}
	})
	if !started {
		l.resolving.Delete(land.ID())
	}
}

func (l *Loop) resolve(ctx context.Context, land *actor.Land, leads bool) error {
	if leads {
		vacated := nodemsg.Vacated{Region: land.ID(), Cell: land.Cell()}
		_, err := l.Directory.Consult(ctx, nodemsg.Question{Vacated: &vacated}, func(c *actor.Catalog) (nodemsg.Answer, error) {
			was, err := l.Here(ctx, c, vacated)
			return nodemsg.Answer{Region: &was}, err
		})
		if err != nil && !errors.Is(err, directory.ErrNotFounded) {
			return err
		}
	}
	switch _, err := l.Directory.ByID(ctx, land.ID()); {
	case err == nil:
		return errors.New("the catalog lists it")
	case !errors.Is(err, directory.ErrNotFounded):
		return err
	}
	land.Remove(false)
	return nil
}
