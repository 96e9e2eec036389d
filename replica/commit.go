package replica

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// commitRound does everything that one commit allows.
func (h *Host) commitRound() {
	if h.stall == nil {
		h.collectReadies()
		if len(h.batch) > 0 || len(h.founding) > 0 || h.flushDue && len(h.lazy) > 0 {
			if h.sentAhead && len(h.batch) == 1 {
				// Followers start to write when they receive the entries. Without this call the disk would delay that:
				// during a write, the runtime notices only after a while that other goroutines could use the processor.
				runtime.Gosched()
			}
			h.sentAhead = false
			h.commit()
			h.collectReadies() // in groups of one, storing entries commits them: deliver them now
		}
	}
	if len(h.lazy) == 0 {
		h.flushDue = false
	}
	h.finishClosing()
	h.metrics.lag.Set(float64(h.lag))
}

// collectReadies lets raft do everything that needs no disk, and collects the rest in the batch.
func (h *Host) collectReadies() {
	dirty := h.dirty
	h.dirty = nil
	for _, r := range dirty {
		r.dirty = false
		if r.ended || !r.Idle() {
			continue
		}
		store, err := r.Act()
		h.settle(r)
		switch {
		case err != nil:
			h.fail(r, err)
		case store:
			h.batch = append(h.batch, r)
		}
	}
}

// commitPart is a replica's part of a commit.
type commitPart struct {
	r *hosted
	raftgroup.Prepared
}

// keptWrites bounds the memory that is kept for the next commit's writes.
const keptWrites = 4096

// commit stores, in one transaction, the batch and everything else that waits.
func (h *Host) commit() {
	batch, lazy, founders := h.batch, h.lazy, h.founding
	h.batch, h.lazy, h.founding, h.flushDue = nil, nil, nil, false
	h.flush.Stop()

	writes := h.writes[:0]
	defer func() {
		clear(writes)
		if h.writes = writes[:0]; cap(writes) > keptWrites {
			h.writes = nil
		}
	}()
	var parts []commitPart
	entries := 0
	for _, f := range founders {
		writes = append(writes, f.writes...)
	}
	prepare := func(r *hosted) {
		more, part, err := r.Prepare(writes)
		if err != nil {
			h.fail(r, err) // its writes are not part of the others' commit
			return
		}
		writes = more
		parts = append(parts, commitPart{r, part})
		entries += part.Entries
		r.lazy = false
	}
	for _, r := range batch {
		prepare(r)
	}
	for _, r := range lazy {
		if r.lazy && !r.ended { // otherwise it was in the batch
			prepare(r)
		}
	}
	err := h.store(writes, len(parts)+len(founders), entries)
	if err != nil {
		for _, f := range founders {
			f.reply(nil, err)
		}
		for _, part := range parts {
			part.r.lazy = true
			h.lazy = append(h.lazy, part.r)
		}
		h.enterStall(err)
		return
	}
	for _, part := range parts {
		h.try(part.r, part.Stored)
	}
	for _, f := range founders {
		h.resume(f.group, f.state, f.conf, f.tables, f.reply)
	}
}

// store commits writes and counts them. Its error is ErrStorage.
func (h *Host) store(writes []kv.Write, groups, entries int) error {
	begin := time.Now()
	err := h.node.Storage.Commit(writes)
	if err != nil {
		h.metrics.failures.Inc()
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	h.metrics.commits.Inc()
	h.metrics.entries.Add(float64(entries))
	h.metrics.commitSeconds.Observe(time.Since(begin).Seconds())
	h.metrics.batchEntries.Observe(float64(entries))
	h.metrics.batchGroups.Observe(float64(groups))
	return nil
}

// enterStall stops all groups because storage refused a commit. Each returns to its durable state.
func (h *Host) enterStall(cause error) {
	if len(h.replicas) == 0 {
		return // only foundings failed, and their callers have the error
	}
	h.node.Logger.Error("storage refuses writes", "error", cause, "groups", len(h.replicas))
	h.metrics.stalled.Set(1)
	h.stall = cause
	stall := h.stall
	h.stalled.Store(&stall)
	for _, r := range h.sortedReplicas() {
		if r.Replacing() {
			h.fail(r, fmt.Errorf("replace log: %w", h.stall))
			continue
		}
		r.dirty = false
		r.Stall(h.stall)
		h.settle(r)
	}
	h.batch, h.dirty = nil, nil
	h.retry.Reset(h.node.Limits.RetryAfter)
}

// room is how many bytes must fit into storage before the groups continue. On a nearly full disk the small rows that a
// retry rewrites always fit; the next edits would not, and the groups would stall again at once.
const room = 256 << 10

// probeRoom checks whether storage has room: it writes that much and deletes it again.
func (h *Host) probeRoom() error {
	key := raftlog.StateKey(0, raftlog.KindProbe)
	if err := h.store([]kv.Write{{Table: raftlog.TableState, Key: key, Value: make([]byte, room)}}, 1, 0); err != nil {
		return err
	}
	return h.store([]kv.Write{{Table: raftlog.TableState, Key: key}}, 1, 0)
}

// retryStorage checks whether storage accepts writes again, and restarts the groups if so.
func (h *Host) retryStorage() {
	if h.stall == nil {
		return
	}
	if err := h.probeRoom(); err != nil {
		h.stall = err
		h.retry.Reset(h.node.Limits.RetryAfter)
		return
	}
	var writes []kv.Write
	var parts []commitPart
	for _, r := range h.sortedReplicas() {
		more, part, err := r.Prepare(writes)
		if err != nil {
			h.fail(r, err)
			continue
		}
		writes = more
		parts = append(parts, commitPart{r, part})
	}
	h.lazy = nil
	err := h.store(writes, len(parts), 0)
	if err != nil && len(parts) > 0 {
		// Is the storage at fault, or one owner's writes? Write a separate row to find out: the failed commit may have
		// been stored after all, and no part of it may be undone.
		probe := []kv.Write{{Table: raftlog.TableState, Key: raftlog.StateKey(0, raftlog.KindProbe), Value: []byte{1}}}
		if err := h.store(probe, 1, 0); err != nil {
			h.stall = err
			for _, part := range parts {
				part.r.lazy = true
				h.lazy = append(h.lazy, part.r)
			}
			h.retry.Reset(h.node.Limits.RetryAfter)
			return
		}
		parts = slices.DeleteFunc(parts, func(part commitPart) bool {
			writes, _, err := part.r.Prepare(nil)
			if err == nil {
				err = h.store(writes, 1, 0)
			}
			if err != nil {
				h.fail(part.r, fmt.Errorf("store applied writes: %w", err))
			}
			return err != nil
		})
	}
	h.node.Logger.Info("storage accepts writes again", "groups", len(parts))
	h.metrics.stalled.Set(0)
	h.stall = nil
	h.stalled.Store(nil)
	for _, part := range parts {
		part.r.lazy = false
		h.try(part.r, func() error {
			if err := part.Stored(); err != nil {
				return err
			}
			return part.r.Resume()
		})
	}
}
