package replica

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// committer steps the open groups and stores what they need, with one storage transaction for all of them. While
// storage refuses writes it is stalled. Owned by Host.Run.
type committer struct {
	node    *raftgroup.Node
	metrics *metrics
	groups  *openGroups

	dirty    []*hosted   // replicas for which raft may have work
	batch    []*hosted   // replicas with a Ready that must be stored
	lazy     []*hosted   // replicas with data to store that can wait
	founding []*founding // groups to be created with the next commit

	flush     alarm // set while lazy is not empty: when it must be stored
	flushDue  bool
	sentAhead bool       // entries of the batch were sent before they are stored
	writes    []kv.Write // of a commit: the memory is reused

	watch    diskWatch
	promised atomic.Uint64 // commits that others may rely on: entries, votes, foundings

	retry   alarm                 // set while stalled
	stall   error                 // why storage refuses writes; nil if it does not
	stalled atomic.Pointer[error] // stall, for any goroutine
}

// alarm is a timer of the host's loop; a *time.Timer, but in the simulation.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// founding is a group that is created with the next commit.
type founding struct {
	group  uint64
	writes []kv.Write
	done   func(error)
}

// try calls f for the replica, and ends the replica if that fails.
func (c *committer) try(r *hosted, f func() error) {
	if err := f(); err != nil {
		c.fail(r, err)
		return
	}
	c.settle(r)
	c.markDirty(r)
}

// settle carries out what a replica requires after a call.
func (c *committer) settle(r *hosted) {
	e := r.TakeEffects()
	switch e.Clock {
	case raftgroup.ClockStart:
		c.groups.ticking.start(r)
	case raftgroup.ClockStop:
		c.groups.ticking.stop(r)
	case raftgroup.ClockKeep:
	}
	c.flushDue, c.sentAhead = c.flushDue || e.StoreNow, c.sentAhead || e.SentAhead
	if e.StoreLater {
		c.storeLater(r)
	}
	c.groups.countLag(r, e.Lag)
}

// markDirty marks the replica as one for which raft may have work.
func (c *committer) markDirty(r *hosted) {
	if !r.dirty && !r.ended {
		r.dirty = true
		c.dirty = append(c.dirty, r)
	}
}

// storeLater marks the replica as one with data to store that can wait for others.
func (c *committer) storeLater(r *hosted) {
	if r.lazy || r.ended {
		return
	}
	r.lazy = true
	c.lazy = append(c.lazy, r)
	if len(c.lazy) == 1 {
		c.flush.Reset(c.node.Limits.FlushAfter)
	}
}

// fail ends a group on this node: its owner gets Failed. Other groups are not affected.
func (c *committer) fail(r *hosted, err error) {
	c.node.Logger.Error("group failed", "group", r.Group().ID(), "error", err, "state", r.String())
	c.drop(r, err, err)
}

// drop removes a replica from memory. A nil failure is not delivered.
func (c *committer) drop(r *hosted, refusal, failure error) {
	if r.ended {
		return
	}
	r.ended = true
	c.groups.remove(r)
	gone := func(other *hosted) bool { return other == r }
	c.batch, c.lazy = slices.DeleteFunc(c.batch, gone), slices.DeleteFunc(c.lazy, gone)
	r.End(refusal, failure)
}

// busy reports whether there is work left without new input.
func (c *committer) busy() bool {
	return c.stall == nil && (len(c.dirty)+len(c.batch)+len(c.founding) > 0 || c.flushDue && len(c.lazy) > 0)
}

// round does everything that one commit allows.
func (c *committer) round() {
	if c.stall == nil {
		c.collectReadies()
		if len(c.batch) > 0 || len(c.founding) > 0 || c.flushDue && len(c.lazy) > 0 {
			if c.sentAhead && len(c.batch) == 1 {
				// Followers start to write when they receive the entries. Without this call the disk would delay that:
				// during a write, the runtime notices only after a while that other goroutines could use the processor.
				runtime.Gosched()
			}
			c.sentAhead = false
			c.commit()
			c.collectReadies() // in groups of one, storing entries commits them: deliver them now
		}
	}
	if len(c.lazy) == 0 {
		c.flushDue = false
	}
}

// collectReadies lets raft do everything that needs no disk, and collects the rest in the batch.
func (c *committer) collectReadies() {
	dirty := c.dirty
	c.dirty = nil
	for _, r := range dirty {
		r.dirty = false
		if r.ended || !r.Idle() {
			continue
		}
		store, err := r.Act()
		c.settle(r)
		switch {
		case err != nil:
			c.fail(r, err)
		case store:
			c.batch = append(c.batch, r)
		}
	}
}

// commitPart is a replica's part of a commit.
type commitPart struct {
	r *hosted
	raftgroup.Staged
}

// keptWrites bounds the memory that is kept for the next commit's writes.
const keptWrites = 4096

// commit stores, in one transaction, the batch and everything else that waits.
func (c *committer) commit() {
	batch, lazy, founders := c.batch, c.lazy, c.founding
	c.batch, c.lazy, c.founding, c.flushDue = nil, nil, nil, false
	c.flush.Stop()

	writes := c.writes[:0]
	defer func() {
		clear(writes)
		if c.writes = writes[:0]; cap(writes) > keptWrites {
			c.writes = nil
		}
	}()
	var parts []commitPart
	entries := 0
	for _, f := range founders {
		writes = append(writes, f.writes...)
	}
	stage := func(r *hosted) {
		more, part, err := r.Stage(writes)
		if err != nil {
			c.fail(r, err) // its writes are not part of the others' commit
			return
		}
		writes = more
		parts = append(parts, commitPart{r, part})
		entries += part.Entries
		r.lazy = false
	}
	for _, r := range batch {
		stage(r)
	}
	for _, r := range lazy {
		if r.lazy && !r.ended { // otherwise it was in the batch
			stage(r)
		}
	}
	err := c.store(writes, entries)
	if err != nil {
		for _, f := range founders {
			f.done(err)
		}
		for _, part := range parts {
			part.r.lazy = true
			c.lazy = append(c.lazy, part.r)
		}
		c.enterStall(err)
		return
	}
	if len(batch)+len(founders) > 0 {
		c.promised.Add(1) // before anybody is told
	}
	for _, part := range parts {
		c.try(part.r, part.Stored)
	}
	for _, f := range founders {
		f.done(nil)
	}
}

// store commits writes and counts them. Its error is ErrStorage.
func (c *committer) store(writes []kv.Write, entries int) error {
	late := time.AfterFunc(hungLogged, func() {
		c.node.Logger.Error("the disk does not answer, so others lead this node's regions if they can", "waiting", hungLogged)
	})
	ended := c.watch.begin()
	err := c.node.Storage.Commit(writes)
	took := ended()
	if !late.Stop() {
		c.node.Logger.Info("the disk answers again", "took", took)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	c.metrics.commits.Inc()
	c.metrics.entries.Add(float64(entries))
	c.metrics.commitSeconds.Observe(took.Seconds())
	c.metrics.batchEntries.Observe(float64(entries))
	return nil
}

// enterStall stops all groups because storage refused a commit. Each returns to its durable state.
func (c *committer) enterStall(cause error) {
	if len(c.groups.replicas) == 0 {
		return // only foundings failed, and their callers have the error
	}
	c.node.Logger.Error("storage refuses writes", "error", cause, "groups", len(c.groups.replicas))
	c.stall = cause
	c.stalled.Store(&cause)
	for _, r := range c.groups.sorted() {
		if r.Replacing() {
			c.fail(r, fmt.Errorf("replace log: %w", c.stall))
			continue
		}
		r.dirty = false
		r.Stall(c.stall)
		c.settle(r)
	}
	c.batch, c.dirty = nil, nil
	c.retry.Reset(c.node.Limits.RetryAfter)
}

// room is how many bytes must fit into storage before the groups continue. On a nearly full disk the small rows that a
// retry rewrites always fit; the next edits would not, and the groups would stall again at once.
const room = 256 << 10

// probeRoom checks whether storage has room: it writes that much and deletes it again.
func (c *committer) probeRoom() error {
	key := raftlog.StateKey(0, raftlog.KindProbe)
	if err := c.store([]kv.Write{{Table: raftlog.TableState, Key: key, Value: make([]byte, room)}}, 0); err != nil {
		return err
	}
	return c.store([]kv.Write{{Table: raftlog.TableState, Key: key}}, 0)
}

// retryStorage checks whether storage accepts writes again, and restarts the groups if so.
func (c *committer) retryStorage() {
	if c.stall == nil {
		return
	}
	if err := c.probeRoom(); err != nil {
		c.stall = err
		c.retry.Reset(c.node.Limits.RetryAfter)
		return
	}
	var writes []kv.Write
	var parts []commitPart
	for _, r := range c.groups.sorted() {
		more, part, err := r.Stage(writes)
		if err != nil {
			c.fail(r, err)
			continue
		}
		writes = more
		parts = append(parts, commitPart{r, part})
	}
	c.lazy = nil
	err := c.store(writes, 0)
	if err != nil && len(parts) > 0 {
		// Is the storage at fault, or one owner's writes? Write a separate row to find out: the failed commit may have
		// been stored after all, and no part of it may be undone.
		probe := []kv.Write{{Table: raftlog.TableState, Key: raftlog.StateKey(0, raftlog.KindProbe), Value: []byte{1}}}
		if err := c.store(probe, 0); err != nil {
			c.stall = err
			for _, part := range parts {
				part.r.lazy = true
				c.lazy = append(c.lazy, part.r)
			}
			c.retry.Reset(c.node.Limits.RetryAfter)
			return
		}
		parts = slices.DeleteFunc(parts, func(part commitPart) bool {
			writes, _, err := part.r.Stage(nil)
			if err == nil {
				err = c.store(writes, 0)
			}
			if err != nil {
				c.fail(part.r, fmt.Errorf("store applied writes: %w", err))
			}
			return err != nil
		})
	}
	c.node.Logger.Info("storage accepts writes again", "groups", len(parts))
	c.stall = nil
	c.stalled.Store(nil)
	for _, part := range parts {
		part.r.lazy = false
		c.try(part.r, func() error {
			if err := part.Stored(); err != nil {
				return err
			}
			return part.r.Resume()
		})
	}
}
