package raftgroup

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Act lets raft do everything that needs no disk. It reports whether there is a Ready that stage must store.
func (r *Replica) Act() (store bool, err error) {
	err = r.guard("act", func() error {
		for r.raw.HasReady() {
			rd := r.raw.Ready()
			install, err := r.incoming.match(rd)
			if install {
				err = r.incoming.snapshot.prepare(r.node.Storage, r.tables)
			}
			if err != nil {
				return err
			}
			if rd.MustSync || install {
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

// sendAhead sends a leader's entries while its own disk still writes them (Ongaro's thesis, 10.2.1). They promise
// nothing on behalf of this node: it counts itself only when raft learns, after the commit, that they are stored.
// Messages that do promise something (votes, acknowledgements) wait for finish. So does everything else if the term or
// vote is not stored yet.
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

// finish processes a Ready that is durable, or that needs no writing: it sends, delivers and advances.
func (r *Replica) finish(rd raft.Ready) error {
	if len(rd.Entries) > 0 {
		r.log.Append(rd.Entries)
	}
	if r.log.Changed {
		r.log.Changed = false
		r.publishRoster()
	}
	r.check.floor = r.log.Last
	if !raft.IsEmptyHardState(rd.HardState) {
		r.term, r.vote, r.commit = rd.GetTerm(), rd.GetVote(), rd.GetCommit()
	}
	if rd.SoftState != nil {
		r.leader, r.leading = rd.SoftState.Lead, rd.SoftState.RaftState == raft.StateLeader
	}
	if err := r.send(rd.Messages); err != nil {
		return err
	}
	if n := len(rd.CommittedEntries); n > 0 {
		r.advanced = rd.CommittedEntries[n-1].GetIndex()
		for _, entry := range rd.CommittedEntries {
			if entry.GetType() != raftpb.EntryNormal {
				if err := r.reconfigure(entry); err != nil {
					return err
				}
			}
		}
		if err := r.deliverEntries(rd.CommittedEntries); err != nil {
			return err
		}
		r.effects.StoreLater = true
	}
	r.reads.confirm(rd.ReadStates)
	r.reads.answer(r.positions)
	r.deliverLeadership()
	r.publishStatus()
	r.raw.Advance(rd)
	if r.members.alone() {
		r.log.Shorten(r.mailed, raftlog.MaxTailBytes)
	} else {
		r.log.Shorten(0, raftlog.MaxTailBytes) // kept for the other members, which lag by what is in flight
	}
	return nil
}

func (r *Replica) send(messages []*raftpb.Message) error {
	for _, m := range messages {
		peer := r.members.peer(m.GetTo())
		if peer != "" && m.GetType() == raftpb.MsgSnap {
			r.sendSnapshot(peer, m)
			continue
		}
		if r.node.Send == nil || peer == "" {
			continue
		}
		if r.announcements.withhold(m, len(r.log.Changes) > 0) {
			continue
		}
		r.reads.recordSent(m)
		encoded, err := raftframe.Encode(m)
		if err != nil {
			return err
		}
		r.node.Send(peer, r.group, encoded)
	}
	return nil
}

func (r *Replica) sendSnapshot(peer string, m *raftpb.Message) {
	to := m.GetTo()
	report := func(err error) error {
		r.snapshots.sent(to, err)
		if r.raw == nil || err != nil {
			return nil
		}
		return r.guard("report snapshot", func() error { r.raw.ReportSnapshot(to, raft.SnapshotFinish); return nil })
	}
	r.snapshots.send(peer, m, func(err error) {
		r.node.Call(r.handle, func() error { return report(err) })
	})
}

// reconfigure puts a committed change into force.
func (r *Replica) reconfigure(entry *raftpb.Entry) error {
	c, conf, err := r.members.next(entry)
	if err != nil {
		r.logger.Warn("configuration change refused", "index", entry.GetIndex(), "error", err)
		r.publishRoster()
		return nil
	}
	if c.Kind == raftpb.ConfChangeRemoveNode && r.leading {
		if err := r.send(r.members.removalNotices(r.raw.Status(), r.term, c.ID, conf.Index)); err != nil {
			return err
		}
	}
	r.raw.ApplyConfChange(c.Raft())
	r.members.enter(conf)
	r.members.unstored = append(r.members.unstored, conf)
	r.publishRoster()
	r.effects.Clock = ClockStart
	r.effects.StoreNow = true // snapshots wait for it
	r.logger.Info("configuration changed", "index", conf.Index, "members", conf.All())
	return nil
}
