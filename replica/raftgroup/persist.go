package raftgroup

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Act lets raft do everything that needs no disk. It reports whether there is a Ready that stage must store.
func (r *Replica) Act() (store bool, err error) {
	err = r.guard("act", func() error {
		for r.raw.HasReady() {
			rd := r.raw.Ready()
			if err := r.prepareInstall(rd); err != nil {
				return err
			}
			if rd.MustSync || !raft.IsEmptySnap(rd.Snapshot) {
				if err := r.sendAhead(&rd); err != nil {
					return err
				}
				r.ready, r.inBatch = rd, true
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
	return r.inBatch, err
}

// sendAhead sends a leader's entries while its own disk still writes them (Ongaro's thesis, 10.2.1). They promise nothing
// on behalf of this node: it counts itself only when raft learns, after the commit, that they are stored. Messages that
// do promise something (votes, acknowledgements) wait for finish. So does everything else if the term or vote is not
// stored yet.
func (r *Replica) sendAhead(rd *raft.Ready) error {
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
	r.effects.SentAhead = r.effects.SentAhead || len(ahead) > 0
	return r.send(ahead)
}

// Prepared is what a commit stores for one replica.
type Prepared struct {
	Entries int // of the log
	r       *Replica
	next    raftlog.State
}

// Prepare adds the replica's writes to the commit.
func (r *Replica) Prepare(writes []kv.Write) (all []kv.Write, s Prepared, err error) {
	err = r.guard("stage", func() error { all, s = r.prepare(writes); return nil })
	return all, s, err
}

func (r *Replica) prepare(writes []kv.Write) ([]kv.Write, Prepared) {
	if snap := r.installing(); snap != nil {
		writes = r.snapshotWrites(writes, snap)
		s := Prepared{Entries: len(r.ready.Entries), r: r, next: r.next()}
		s.next.Applied, s.next.Start, s.next.StartTerm = snap.Index, snap.Index, snap.EntryTerm
		writes = r.log.AppendWrites(writes, r.ready.Entries)
		return append(writes, raftlog.StateWrite(r.group, s.next)), s
	}
	s := Prepared{Entries: len(r.ready.Entries), r: r, next: r.next()}
	writes = r.log.CompactWrites(writes, s.next.Start)
	writes = r.log.AppendWrites(writes, r.ready.Entries)
	writes = append(writes, r.pending...)
	if conf := r.members.upTo(s.next.Applied); conf != nil {
		writes = append(writes, raftlog.ConfigurationWrite(r.group, conf))
	}
	return append(writes, raftlog.StateWrite(r.group, s.next)), s
}

// Stored updates the replica after its staged commit has become durable.
func (s Prepared) Stored() error { return s.r.guard("take over", s.stored) }

func (s Prepared) stored() error {
	r := s.r
	r.stored = s.next
	r.pending, r.pendingBytes = nil, 0
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

// Replacing reports whether the commit in progress replaces stored data, by a snapshot or by another leader's entries. If
// it fails, it is unknown which of the two is stored, so the owner must open the group again.
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
	r.dropIncoming(cause)
	r.pushLeadership(Leadership{Term: r.term, Cause: cause})
}
