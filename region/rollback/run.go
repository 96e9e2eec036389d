package rollback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// lookEvery is how often the node looks for rollbacks that are to be carried out in regions that it leads.
	lookEvery = 500 * time.Millisecond
	// roundTime is the pause between two rounds of entries, so that a rollback leaves most of each tick to the players.
	// A round changes roundBlocks blocks at most.
	roundTime   = 50 * time.Millisecond
	roundBlocks = 2 * world.MaxRollback
	// proposedFor is how long an entry is awaited before it is proposed again.
	proposedFor = 3 * time.Second
	// roundBytes bounds the history of the chunks of one round, which every member decodes when it applies the entries.
	// At least one chunk is worked on.
	roundBytes = 256 << 10
	// openAfter is the time after which the next member of a closed region opens it to carry out a rollback, if those
	// before it have not.
	openAfter = 10 * time.Second
	// scanEvery is how often the closed regions on this node are examined while rollbacks may be left.
	scanEvery = 10 * time.Second
	// trimEvery is how often regions are examined for old history.
	trimEvery = time.Minute
)

// Run carries out rollbacks in the regions that this node leads, opens closed regions for them, and has old history
// dropped, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	r := &runner{Keeper: k, running: make(map[uint64]bool), ended: make(chan result), opened: make(chan struct{}), complete: make(map[uint64]int64)}
	trimmed := time.Now()
	for {
		select {
		case <-ctx.Done():
			for range r.running {
				<-r.ended
			}
			if r.opening {
				<-r.opened
			}
			return
		case done := <-r.ended:
			delete(r.running, done.region)
			r.complete[done.region] = max(r.complete[done.region], done.complete)
			continue
		case <-r.opened:
			r.opening = false
			continue
		case <-ticker.C:
		}
		if time.Since(trimmed) > trimEvery {
			trimmed = time.Now()
			k.trim()
		}
		if due := k.due(); len(due) > 0 {
			r.start(ctx, due)
			r.openNext(ctx, due)
		}
	}
}

// runner is the state of Run, whose goroutine owns it.
type runner struct {
	*Keeper
	running  map[uint64]bool // regions in which a rollback may be carried out
	ended    chan result
	opening  bool             // a region is being opened
	opened   chan struct{}    // receives when that has ended
	complete map[uint64]int64 // the rollback up to which a region is known to be complete
	scanned  time.Time        // when the closed regions were examined
	newest   int64            // the newest rollback that is known
	learned  time.Time        // when it became known here
	last     uint64           // the closed region that was opened last
}

// result is up to which rollback a region is complete, as far as that is known.
type result struct {
	region   uint64
	complete int64
}

// start carries out rollbacks in loaded regions, each in a goroutine of its own.
func (r *runner) start(ctx context.Context, due []policy.Rollback) {
	for _, l := range r.Lands() {
		id := l.ID()
		if _, found := nextFor(due, l.Cell(), r.complete[id]); r.running[id] || !found {
			continue
		}
		r.running[id] = true
		go func() { r.ended <- result{id, r.carryOut(ctx, l)} }() // awaited by Run
	}
}

// due returns the rollbacks that may be left to be carried out.
func (k *Keeper) due() []policy.Rollback {
	return slices.DeleteFunc(slices.Clone(k.Ordered()), func(r policy.Rollback) bool { return r.Aborted })
}

// Passed returns the number of the last rollback that is complete in a region, or does not concern it. It returns an
// error if one is left to be carried out there.
func (k *Keeper) Passed(ctx context.Context, l *actor.Land) (number int64, err error) {
	s, err := read(ctx, l, grid.Box{}, math.MaxInt64)
	if err == nil && !s.leads {
		err = actor.ErrNotHere
	}
	if err != nil {
		return 0, err
	}
	number = s.rolledBack
	for _, r := range k.Ordered() {
		if _, left := nextFor([]policy.Rollback{r}, l.Cell(), s.rolledBack); left && !r.Aborted && s.keeps {
			return 0, fmt.Errorf("rollback %d is not complete in %v: wait until it is, resume it if it is paused, or abort it", r.ID, l.Cell())
		}
		number = max(number, r.Number)
	}
	return number, nil
}

// openNext opens a closed region of which this node is a member, and in which a rollback is left to be carried out: one
// at a time, for they may be many.
func (r *runner) openNext(ctx context.Context, due []policy.Rollback) {
	newest := due[len(due)-1].Number
	if newest != r.newest {
		r.newest, r.learned, r.scanned = newest, time.Now(), time.Time{}
	}
	if r.opening || time.Since(r.scanned) < scanEvery {
		return
	}
	all, err := r.Registry.All()
	if err != nil {
		r.Logger.Warn("regions not examined for rollbacks", "error", err)
	}
	start := slices.IndexFunc(all, func(info nodemsg.Region) bool { return info.ID > r.last })
	for i := range all {
		info := all[(max(start, 0)+i)%len(all)] // after the last one: it may have failed
		if r.isDue(info, due) {
			r.opening, r.last = true, info.ID
			go func() { // awaited by Run
				if _, err := r.Lead(ctx, info.ID); err != nil {
					r.Logger.Debug("region not opened for a rollback", "region", info.ID, "error", err)
				}
				r.opened <- struct{}{}
			}()
			return
		}
	}
	r.scanned = time.Now()
}

// isDue reports whether a region is closed, and this node should open it for a rollback.
func (r *runner) isDue(info nodemsg.Region, due []policy.Rollback) bool {
	next, found := nextFor(due, info.Cell, r.complete[info.ID])
	if !found || next.Paused || info.Split != 0 || info.ID == world.CatalogID || r.Regions.Loaded(info.ID) != nil {
		return false
	}
	turn := slices.IndexFunc(info.Members, func(m nodemsg.Member) bool { return m.Peer == r.Self.Peer })
	if time.Since(r.learned) < time.Duration(max(turn, 0))*openAfter {
		return false
	}
	done, err := world.RolledBackIn(r.Storage.Get, info.ID)
	if structure, other := world.StructureIn(r.Storage.Get, info.ID); err == nil && other == nil && !structure.Edited {
		done = due[len(due)-1].Number // it has no history
	}
	if err == nil && done >= next.Number {
		r.complete[info.ID] = done
		return false
	}
	return true
}

// ordered returns the rollback with a number.
func (k *Keeper) ordered(number int64) (r policy.Rollback, found bool) {
	all := k.Ordered()
	i, found := slices.BinarySearchFunc(all, number, byNumber)
	if found {
		r = all[i]
	}
	return r, found
}

func byNumber(r policy.Rollback, number int64) int { return cmp.Compare(r.Number, number) }

// stopped reports whether a rollback was paused or aborted.
func (k *Keeper) stopped(number int64) bool {
	r, found := k.ordered(number)
	return !found || r.Paused || r.Aborted
}

// nextFor returns the first rollback after a number that concerns a cell.
func nextFor(due []policy.Rollback, cell grid.Cell, after int64) (policy.Rollback, bool) {
	first, _ := slices.BinarySearchFunc(due, after+1, byNumber)
	for _, r := range due[first:] {
		if cell.Area().Overlaps(r.Box.Area()) {
			return r, true
		}
	}
	return policy.Rollback{}, false
}

// carryOut carries out the rollbacks that are left in a region, as long as this node leads it. It returns the number up
// to which the region is complete.
func (k *Keeper) carryOut(ctx context.Context, l *actor.Land) (complete int64) {
	k.metrics.running.Inc()
	defer k.metrics.running.Dec()
	for {
		s, err := read(ctx, l, grid.Box{}, math.MaxInt64)
		if err != nil {
			return complete
		}
		complete = s.rolledBack
		due := k.due()
		next, found := nextFor(due, l.Cell(), complete)
		switch {
		case s.split: // its land is in its children
			return complete
		case len(due) > 0 && (!found || !s.keeps): // without a history there is nothing to undo
			return max(complete, due[len(due)-1].Number)
		case !found, next.Paused, !s.leads:
			return complete
		}
		w := work{keeper: k, land: l, rollback: next.Rollback, undoes: next.Undoes != 0, plans: make(map[grid.ChunkPos]plan)}
		if err := w.run(ctx); err != nil {
			k.Logger.Debug("rollback interrupted", "region", l.ID(), "rollback", next.ID, "error", err)
			return complete
		}
		k.Logger.Info("rollback complete in a region", "region", l.ID(), "cell", l.Cell().String(), "rollback", next.ID, "blocks", w.changed)
	}
}

// work is a rollback in one region.
type work struct {
	keeper   *Keeper
	land     *actor.Land
	rollback history.Rollback
	undoes   bool // another rollback
	plans    map[grid.ChunkPos]plan
	changed  int
}

// plan is what is left to be done in a chunk.
type plan struct {
	bytes    int // of the history that it was made from
	changes  []history.Change
	proposed time.Time // when an entry was proposed that is to do it; zero if none was
}

var errStopped = errors.New("it was paused or aborted")

// run carries out the rollback, and returns when it is complete in the region.
func (w *work) run(ctx context.Context) error {
	proposed := make(map[int64]time.Time) // when it was that the rollbacks up to a number are over
	for {
		if w.keeper.stopped(w.rollback.Number) {
			return errStopped
		}
		s, err := read(ctx, w.land, w.rollback.Box, w.rollback.Since)
		switch {
		case err != nil:
			return err
		case !s.leads, s.split:
			return actor.ErrNotHere
		case s.rolledBack >= w.rollback.Number:
			return nil
		}
		left, over := false, w.rollback.Number
		switch {
		case w.undoes && s.rolledBack < w.rollback.Number-1: // the one that it undoes may have been aborted, and still have entries under way
			over--
		case w.undoes || s.marked >= w.rollback.Number: // it has arrived; the region's goroutine sees to that
			if left, err = w.round(ctx, s); err != nil {
				return err
			}
		default:
			left = true
		}
		if !left && !s.frozen && time.Since(proposed[over]) > proposedFor {
			proposed[over] = time.Now()
			r := w.rollback
			r.Number = over
			if err := propose(ctx, w.land, world.RollbackStep{Rollback: r, Done: true}.Encode()); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(roundTime):
		}
	}
}

// round proposes the next entries, and reports whether anything is left to be done.
func (w *work) round(ctx context.Context, s state) (left bool, err error) {
	blocks, decoded := 0, 0 // of this round
	for _, c := range s.chunks {
		p, known := w.plans[c.pos]
		if size := c.bytes(); !known || p.bytes != size {
			before := len(p.changes)
			p = plan{bytes: size}
			if p.changes, err = w.rollback.Changes(c.pos, c.segments); err != nil {
				return false, fmt.Errorf("roll back %v: %w", c.pos, err)
			}
			if known {
				w.changed += max(0, before-len(p.changes))
				w.keeper.metrics.blocks.Add(float64(max(0, before-len(p.changes))))
			}
			w.plans[c.pos] = p
		}
		if len(p.changes) == 0 {
			continue
		}
		left = true
		if s.frozen || time.Since(p.proposed) < proposedFor || blocks >= roundBlocks || decoded > 0 && decoded+p.bytes > roundBytes {
			continue
		}
		step := world.RollbackStep{Rollback: w.rollback, Time: w.keeper.Now().UnixMilli(), Chunk: c.pos}
		now := p.changes[:min(len(p.changes), world.MaxRollback)]
		if step.Natural, err = w.natural(ctx, c, now); err != nil {
			return false, err
		}
		if err := propose(ctx, w.land, step.Encode()); err != nil {
			return false, err
		}
		blocks, decoded = blocks+len(now), decoded+p.bytes
		p.proposed = time.Now()
		w.plans[c.pos] = p
	}
	return left, nil
}

// natural returns what the terrain has at the positions that become natural again.
func (w *work) natural(ctx context.Context, c chunkHistory, changes []history.Change) ([]nodemsg.BlockAt, error) {
	var all []nodemsg.BlockAt
	var ground *chunk.Chunk
	for _, change := range changes {
		if change.To != history.Natural {
			continue
		}
		if ground == nil {
			var err error
			if ground, err = w.keeper.ground(ctx, c.pos, c.base); err != nil {
				return nil, fmt.Errorf("find what the terrain has at %v: %w", c.pos, err)
			}
		}
		all = append(all, nodemsg.BlockAt{At: change.At, Block: ground.Get(change.At)})
	}
	return all, nil
}

// ground returns the terrain under the edits of a chunk.
func (k *Keeper) ground(ctx context.Context, pos grid.ChunkPos, base [32]byte) (*chunk.Chunk, error) {
	if k.Ground != nil {
		if ground := k.Ground(pos); ground.Hash() == base {
			return ground, nil
		}
	}
	return k.Base(ctx, pos, base)
}

// propose proposes an entry, if this node still leads the region.
func propose(ctx context.Context, l *actor.Land, entry []byte) error {
	err, failed := actor.Ask(ctx, l.Actor, l.Enqueue, func(tx actor.Tx) error {
		if !tx.Leads() {
			return actor.ErrNotHere
		}
		return tx.Raft().Propose(entry)
	})
	return cmp.Or(failed, err)
}

// trim has old history dropped in the regions that this node leads: what there is too much of, and once the clock has
// settled what is too old.
func (k *Keeper) trim() {
	most := k.keep.Load()
	before := int64(0)
	if k.Settled() {
		before = k.Now().Add(-most.Time).UnixMilli()
	}
	for _, l := range k.Lands() {
		l.Enqueue(func(tx actor.Tx) {
			size, oldest := tx.Contents().HistorySize()
			if !tx.Leads() || size == 0 || size <= most.Bytes && oldest >= before {
				return
			}
			if err := tx.Raft().Propose(world.Trim{Before: before, Bytes: most.Bytes / 10 * 9}.Encode()); err != nil {
				k.Logger.Debug("old history not dropped yet", "region", tx.ID(), "error", err)
				return
			}
			k.metrics.trims.Inc()
		})
	}
}
