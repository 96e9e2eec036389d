package replica

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/kv"
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
		if r.ended || r.inBatch || r.node == nil {
			continue
		}
		err := r.guard("act", func() error {
			for r.node.HasReady() {
				rd := r.node.Ready()
				if err := r.prepareInstall(rd); err != nil {
					return err
				}
				if rd.MustSync || !raft.IsEmptySnap(rd.Snapshot) {
					if err := r.sendAhead(&rd); err != nil {
						return err
					}
					r.ready, r.inBatch = rd, true
					h.batch = append(h.batch, r)
					return nil
				}
				// Without MustSync this Ready makes no promise that a crash could break: its commit index is stored
				// later. (raft's doc.go asks for the hard state before the messages; its rawnode.go exempts this.)
				if err := r.finish(rd); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			h.fail(r, err)
		}
	}
}

// sendAhead sends a leader's entries while its own disk still writes them (Ongaro's thesis, 10.2.1). They promise nothing
// on behalf of this node: it counts itself only when raft learns, after the commit, that they are stored. Messages that
// do promise something (votes, acknowledgements) wait for finish. So does everything else if the term or vote is not
// stored yet.
func (r *replica) sendAhead(rd *raft.Ready) error {
	if !raft.IsEmptyHardState(rd.HardState) && (rd.GetTerm() != r.term || rd.GetVote() != r.vote) {
		return nil
	}
	var ahead, rest []*raftpb.Message
	for _, m := range rd.Messages {
		if m.GetType() == raftpb.MsgApp {
			ahead = append(ahead, m)
		} else {
			rest = append(rest, m)
		}
	}
	rd.Messages = rest
	r.host.sentAhead = r.host.sentAhead || len(ahead) > 0
	return r.send(ahead)
}

// staged is what a commit stores for one replica.
type staged struct {
	r    *replica
	next raftlog.State
}

// stage adds the replica's writes to the commit.
func (r *replica) stage(writes []kv.Write) ([]kv.Write, staged) {
	if snap := r.installing(); snap != nil {
		writes = r.snapshotWrites(writes, snap)
		s := staged{r: r, next: r.next()}
		s.next.Applied, s.next.Start, s.next.StartTerm = snap.Index, snap.Index, snap.EntryTerm
		writes = r.log.AppendWrites(writes, r.ready.Entries)
		return append(writes, raftlog.StateWrite(r.group, s.next)), s
	}
	s := staged{r: r, next: r.next()}
	writes = r.log.CompactWrites(writes, s.next.Start)
	writes = r.log.AppendWrites(writes, r.ready.Entries)
	writes = append(writes, r.pending...)
	if conf := r.members.upTo(s.next.Applied); conf != nil {
		writes = append(writes, raftlog.ConfigurationWrite(r.group, conf))
	}
	return append(writes, raftlog.StateWrite(r.group, s.next)), s
}

// stored updates the replica after its staged commit has become durable.
func (s staged) stored() error {
	r := s.r
	r.stored = s.next
	r.pending, r.pendingBytes, r.lazy = nil, 0, false
	if snap := r.installing(); snap != nil {
		r.installed(snap)
	}
	r.log.Compact(s.next.Start)
	r.members.stored(s.next.Applied)
	rd, inBatch := r.ready, r.inBatch
	r.ready, r.inBatch = raft.Ready{}, false
	if !inBatch {
		r.log.Append(nil)
		return nil
	}
	return r.guard("act", func() error { return r.finish(rd) })
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
	var parts []staged
	entries := 0
	for _, f := range founders {
		writes = append(writes, f.writes...)
	}
	stage := func(r *replica) {
		var part staged
		var more []kv.Write
		if err := r.guard("stage", func() error { more, part = r.stage(writes); return nil }); err != nil {
			h.fail(r, err) // its writes are not part of the others' commit
			return
		}
		writes = more
		parts = append(parts, part)
		entries += len(r.ready.Entries)
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
		if err := part.r.guard("take over", part.stored); err != nil {
			h.fail(part.r, err)
			continue
		}
		h.markDirty(part.r)
	}
	for _, f := range founders {
		h.resume(f.group, f.state, f.conf, f.tables, f.reply)
	}
}

// store commits writes and counts them. Its error is ErrStorage.
func (h *Host) store(writes []kv.Write, groups, entries int) error {
	begin := time.Now()
	err := h.storage.Commit(writes)
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
	h.logger.Error("storage refuses writes", "error", cause, "groups", len(h.replicas))
	h.metrics.stalled.Set(1)
	h.stall = cause
	stall := h.stall
	h.stalled.Store(&stall)
	for _, r := range h.sortedReplicas() {
		if r.replacing() {
			h.fail(r, fmt.Errorf("replace log: %w", h.stall))
			continue
		}
		r.stop(h.stall)
	}
	h.batch, h.dirty = nil, nil
	h.retry.Reset(h.limits.retryAfter)
}

// replacing reports whether the commit in progress replaces stored data, by a snapshot or by another leader's entries. If
// it fails, it is unknown which of the two is stored, so the owner must open the group again.
func (r *replica) replacing() bool {
	return r.installing() != nil || r.inBatch && len(r.ready.Entries) > 0 && r.ready.Entries[0].GetIndex() <= r.log.Last
}

// stop discards everything that is not durable, until start.
func (r *replica) stop(cause error) {
	if n := len(r.ready.Entries); n > 0 {
		r.log.Stale = max(r.log.Stale, r.ready.Entries[n-1].GetIndex())
	}
	r.ready, r.inBatch, r.dirty = raft.Ready{}, false, false
	r.node, r.leader, r.leading = nil, 0, false
	r.dropIncoming(cause)
	r.pushLeadership(Leadership{Term: r.term, Cause: cause})
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
		h.retry.Reset(h.limits.retryAfter)
		return
	}
	var writes []kv.Write
	var parts []staged
	for _, r := range h.sortedReplicas() {
		var part staged
		writes, part = r.stage(writes)
		parts = append(parts, part)
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
			h.retry.Reset(h.limits.retryAfter)
			return
		}
		parts = slices.DeleteFunc(parts, func(part staged) bool {
			writes, _ := part.r.stage(nil)
			err := h.store(writes, 1, 0)
			if err != nil {
				h.fail(part.r, fmt.Errorf("store applied writes: %w", err))
			}
			return err != nil
		})
	}
	h.logger.Info("storage accepts writes again", "groups", len(parts))
	h.metrics.stalled.Set(0)
	h.stall = nil
	h.stalled.Store(nil)
	for _, part := range parts {
		err := part.stored()
		if err == nil {
			err = h.start(part.r)
		}
		if err != nil {
			h.fail(part.r, err)
			continue
		}
		part.r.pushLeadership(Leadership{Term: part.r.term})
		h.markDirty(part.r)
	}
}
