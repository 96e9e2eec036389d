package raftgroup

import (
	"go.etcd.io/raft/v3"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Staged is what a commit stores for one replica.
type Staged struct {
	Entries int // of the log
	r       *Replica
	next    raftlog.State
}

// Stage adds the replica's writes to the commit.
func (r *Replica) Stage(writes []kv.Write) (all []kv.Write, s Staged, err error) {
	err = r.guard("stage", func() error { all, s = r.stage(writes); return nil })
	return all, s, err
}

func (r *Replica) stage(writes []kv.Write) ([]kv.Write, Staged) {
	if r.check.conflict != r.check.conflictStored {
		writes = append(writes, raftlog.ConflictWrite(r.group, r.check.conflict))
	}
	if snap := r.installing(); snap != nil {
		writes = snap.appendWrites(writes, r.log, r.group)
		s := Staged{Entries: len(r.ready.Entries), r: r, next: r.next()}
		s.next.Applied, s.next.Start, s.next.StartTerm = snap.Index, snap.Index, snap.EntryTerm
		writes = r.log.AppendWrites(writes, r.ready.Entries)
		return append(writes, raftlog.StateWrite(r.group, s.next)), s
	}
	s := Staged{Entries: len(r.ready.Entries), r: r, next: r.next()}
	writes = r.log.CompactWrites(writes, s.next.Start)
	writes = r.log.AppendWrites(writes, r.ready.Entries)
	writes = append(writes, r.unstored.writes...)
	if conf := r.members.upTo(s.next.Applied); conf != nil {
		writes = append(writes, raftlog.ConfigurationWrite(r.group, conf))
	}
	return append(writes, raftlog.StateWrite(r.group, s.next)), s
}

// next returns the state record to store now, including rd if the replica is in the batch.
func (r *Replica) next() raftlog.State {
	s := raftlog.State{Term: r.term, Vote: r.vote, Commit: r.commit, Applied: r.applied, Start: r.log.Start, StartTerm: r.log.StartTerm}
	if r.inBatch && !raft.IsEmptyHardState(r.ready.HardState) {
		s.Term, s.Vote, s.Commit = r.ready.GetTerm(), r.ready.GetVote(), r.ready.GetCommit()
	}
	// Only durably applied entries are cut off. A slower member may still need the last ones.
	durable := r.stored.Applied
	if keep := r.node.Limits.KeepEntries; durable > s.Start+keep+keep/4 {
		s.Start = max(s.Start, r.snapshots.sending.keep(durable-keep, durable-min(durable, 10*keep)))
		s.StartTerm, _ = r.log.Term(s.Start) // start < index ≤ applied ≤ last: a term exists
	}
	return s
}

// Stored updates the replica after its staged commit has become durable.
func (s Staged) Stored() error { return s.r.guard("take over", s.stored) }

func (s Staged) stored() error {
	r := s.r
	r.stored = s.next
	r.unstored, r.check.conflictStored = unstoredWrites{}, r.check.conflict
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

// Replacing reports whether the commit in progress replaces stored data, by a snapshot or by another leader's entries.
// If it fails, it is unknown which of the two is stored, so the owner must open the group again.
func (r *Replica) Replacing() bool {
	return r.installing() != nil || r.inBatch && len(r.ready.Entries) > 0 && r.ready.Entries[0].GetIndex() <= r.log.Last
}

// Stall discards everything that is not durable, until Resume.
func (r *Replica) Stall(cause error) {
	if n := len(r.ready.Entries); n > 0 {
		r.log.Stale = max(r.log.Stale, r.ready.Entries[n-1].GetIndex())
	}
	r.ready, r.inBatch = raft.Ready{}, false
	r.raw, r.leader, r.leading = nil, 0, false
	r.incoming.drop(cause)
	r.pushLeadership(Leadership{Term: r.term, Cause: cause})
}

// Resume starts the replica again after Stall, when storage accepts writes.
func (r *Replica) Resume() error {
	if err := r.Start(); err != nil {
		return err
	}
	r.pushLeadership(Leadership{Term: r.term})
	return nil
}

// installing returns the snapshot in the commit in progress, or nil.
func (r *Replica) installing() *IncomingSnapshot {
	if r.inBatch && !raft.IsEmptySnap(r.ready.Snapshot) {
		return r.incoming.snapshot
	}
	return nil
}

// installed updates the replica after a snapshot has become durable.
func (r *Replica) installed(s *IncomingSnapshot) {
	r.log.Reset(s.Index, s.EntryTerm)
	r.log.Changed = false
	r.members.unstored = nil
	r.members.enter(s.Conf)
	r.positions = positionsAt(s.Index)
	r.publishRoster()
	r.handle.pushRestored(NewConfigured(s.Conf), s.Index)
	r.effects.Clock = ClockStart
	r.logger.Info("snapshot installed", "index", s.Index, "rows", len(s.Rows))
	r.incoming.drop(nil)
}
