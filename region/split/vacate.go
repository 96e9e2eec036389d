package split

import (
	"cmp"
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

// This file gives up regions on which nothing was ever built.
//
// A region ends by an entry in its own log, which its leader proposes, and which has an effect only if the region is
// empty at that place. Then most of its members confirm to the catalog that it has ended, the catalog removes it, and
// each member deletes its copy. This node's own monotonic clock decides how long nobody has watched a region: nothing
// is lost if it is wrong, since whoever comes a moment too late finds land that is founded anew.

const (
	// emptyFor is how long nobody must have watched a region, as far as this node has seen since its start.
	emptyFor = 24 * time.Hour
	// lookEvery is how often the regions of this node are looked through.
	lookEvery = 5 * time.Minute
	// partTime bounds each part of a round, so that none keeps the others from their turn.
	partTime = 2 * time.Minute
	// useTime bounds the question whether one region is in use: its goroutine may be waiting for a disk that hangs.
	useTime = time.Second
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

// errCatalog is returned if the catalog does not answer, or does not remove a region: other regions need not be tried.
var errCatalog = errors.New("the catalog does not answer")

// VacaterOptions are what a Vacater needs. All fields but After and Spawn are required.
type VacaterOptions struct {
	integrity.Node
	Unwatched  *Unwatched
	After      time.Duration // how long nobody must have watched a region; 0: emptyFor
	Spawn      grid.ChunkPos // the land around it is kept
	Policy     *policysync.Copy
	Supervisor *placement.Supervisor
	// Unusable reports whether the copy here is quarantined or damaged.
	Unusable func(id uint64) bool
	// Here has the catalog, which this node leads, remove a region, as this node reports that it was given up.
	Here        func(ctx context.Context, c *actor.Catalog, vacated nodemsg.Vacated) (nodemsg.Region, error)
	AskStatuses integrity.AskStatuses
	// OpenAt has a member open a region, as a gateway does that leaves again at once.
	OpenAt func(ctx context.Context, peer string, info nodemsg.Region) error
}

// Vacater gives up empty regions that this node is responsible for. Any goroutine may call its methods.
type Vacater struct {
	VacaterOptions

	swept     int      // the copy that is looked up next, among those in the order of their ids; of Run's goroutine
	listed    uint64   // the region up to which the catalog was looked through; of Run's goroutine
	resolving sync.Map // regions that were given up and are being removed: id → nil
}

// Unwatched is since when nobody watches the regions that this node is responsible for, as far as is known. Any
// goroutine may call its methods.
type Unwatched struct {
	mu struct {
		sync.Mutex
		since map[uint64]time.Time
	}
}

// NewUnwatched returns an empty list.
func NewUnwatched() *Unwatched {
	u := &Unwatched{}
	u.mu.since = make(map[uint64]time.Time)
	return u
}

// Watched records that a gateway watches a region.
func (u *Unwatched) Watched(id uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.mu.since, id)
}

// NewVacater returns a vacater.
func NewVacater(o VacaterOptions) *Vacater {
	if o.After == 0 {
		o.After = emptyFor
	}
	return &Vacater{VacaterOptions: o}
}

// Run gives up empty regions, and deletes copies of regions that were given up, until ctx ends.
func (l *Vacater) Run(ctx context.Context) {
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
			continue // those that are missing would begin their time again
		}
		for _, part := range []func(context.Context, []nodemsg.Region){l.sweep, l.look, l.openUnopened} {
			ctx, cancel := context.WithTimeout(ctx, partTime)
			part(ctx, regions)
			cancel()
		}
	}
}

// look gives up the regions that nobody has watched for long enough, one after the other. Those that are in use have as
// much time again. Whatever else prevents it may soon have passed, so the others are tried again in the next round.
func (l *Vacater) look(ctx context.Context, regions []nodemsg.Region) {
	due := l.due(ctx, regions)
	for _, info := range due {
		err := l.Vacate(ctx, info.ID)
		switch {
		case err == nil:
			continue
		case errors.Is(err, actor.ErrInUse):
			l.Unwatched.Watched(info.ID)
		}
		l.Logger.Debug("region not given up", "region", info.ID, "cell", info.Cell.String(), "error", err)
		if ctx.Err() != nil || errors.Is(err, errCatalog) {
			break
		}
	}
}

// due lists the regions that nobody has watched for long enough, in any order: of many, each has its turn.
func (l *Vacater) due(ctx context.Context, regions []nodemsg.Region) (due []nodemsg.Region) {
	candidates, unknown := make(map[uint64]nodemsg.Region), make(map[uint64]bool)
	for _, info := range regions {
		if info.Cell.Label.Len() != grid.FoundingLabel {
			continue
		}
		switch responsible, err := l.responsible(ctx, info); {
		case err != nil:
			unknown[info.ID] = true
		case responsible && !l.Keeps(info.Cell):
			candidates[info.ID] = info
		}
	}
	return l.Unwatched.due(candidates, unknown, l.After)
}

// due returns the candidates that nobody has watched for so long. The time of new ones begins, and that of others is
// forgotten unless it is unknown whether they are candidates.
func (u *Unwatched) due(candidates map[uint64]nodemsg.Region, unknown map[uint64]bool, after time.Duration) (due []nodemsg.Region) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id := range u.mu.since {
		if _, ok := candidates[id]; !ok && !unknown[id] {
			delete(u.mu.since, id)
		}
	}
	for id, info := range candidates {
		since, known := u.mu.since[id]
		switch {
		case !known:
			u.mu.since[id] = time.Now()
		case time.Since(since) >= after:
			due = append(due, info)
		}
	}
	return due
}

// responsible reports whether this node is to give up a region: it leads it, or has led it before it was closed, and
// nothing was built there. The error is that this is not known now.
func (l *Vacater) responsible(ctx context.Context, info nodemsg.Region) (bool, error) {
	if l.Unusable(info.ID) {
		return false, nil
	}
	if land := l.Regions.Loaded(info.ID); land != nil {
		ctx, cancel := context.WithTimeout(ctx, useTime)
		defer cancel()
		watched, empty, err := land.Use(ctx)
		return err == nil && !watched && empty && land.Raft().Status().Self, err
	}
	if !l.Supervisor.Responsible(info) {
		return false, nil
	}
	return world.EmptyIn(l.Storage.Keys, info.ID)
}

// Keeps reports whether the land of a cell is kept although nothing was built there: players begin near it, or it is
// claimed.
func (l *Vacater) Keeps(cell grid.Cell) bool {
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

// Vacate gives up a region of which this node is a member, and waits until the copy here is deleted. The error is
// actor.ErrInUse if the region is watched, or something was built there.
func (l *Vacater) Vacate(ctx context.Context, id uint64) error {
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
	land.ResolveFreeze()
	select {
	case <-land.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("vacate region %d: %w: the catalog still lists it: %w", id, errCatalog, ctx.Err())
	}
}

// propose has the region end. All members that are alive must be up to date. While the catalog does not answer no
// region ends: until it is removed there, nobody can use its cell.
func (l *Vacater) propose(ctx context.Context, id uint64) (*actor.Land, error) {
	if listed, err := l.inCatalog(ctx, id); err != nil || !listed {
		return nil, cmp.Or(err, directory.ErrNotFounded)
	}
	land, err := l.Lead(ctx, id)
	if err == nil {
		err = l.awaitMembers(ctx, land)
	}
	if err != nil {
		return nil, err
	}
	return land, land.ProposeVacate(ctx)
}

// inCatalog reports whether the catalog lists a region. The error is an errCatalog.
func (l *Vacater) inCatalog(ctx context.Context, id uint64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	_, err := l.Directory.ByID(ctx, id)
	switch {
	case errors.Is(err, directory.ErrNotFounded):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: %w", errCatalog, err)
	}
	return true, nil
}

// awaitMembers waits until all members that are alive have all of the log: the region may just have been opened.
func (l *Vacater) awaitMembers(ctx context.Context, land *actor.Land) error {
	ctx, cancel := context.WithTimeout(ctx, membersTime)
	defer cancel()
	for {
		_, err := l.Supervisor.UpToDate(ctx, placement.GroupOf(land), land.Raft().Status())
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
func (l *Vacater) Resolve(land *actor.Land, leads bool) {
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

func (l *Vacater) resolve(ctx context.Context, land *actor.Land, leads bool) error {
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
	switch listed, err := l.inCatalog(ctx, land.ID()); {
	case err != nil:
		return err
	case listed:
		return errors.New("the catalog lists it")
	}
	land.Remove(false)
	return nil
}
