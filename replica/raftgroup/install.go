package raftgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// IncomingSnapshot is a received snapshot that is to be written into the tables.
type IncomingSnapshot struct {
	raftframe.Snapshot
	stale []kv.Write // deletions of the owner's rows that are not in the snapshot
	Reply func(error)
}

// ReadSnapshot reads a snapshot that a peer sends; see Host.ReceiveSnapshot. Budget is called before n bytes are allocated.
func (g *Group) ReadSnapshot(peer string, r io.Reader, budget func(n int) error) (*IncomingSnapshot, error) {
	self := g.node.Self
	if peer == self || !g.roster.Load().includes(peer) {
		return nil, raftlog.ErrNotMember
	}
	if g.tables == nil {
		return nil, errors.New("the group has no tables for snapshots")
	}
	s := new(IncomingSnapshot)
	admit := func() error { return g.roster.Load().check(peer, s.From, s.To) }
	err := s.Decode(r, g.tables, admit, budget)
	if err == nil && (s.Conf.Peer(s.From) != peer || s.Conf.Peer(s.To) != self) {
		err = fmt.Errorf("%w: %q and %q are not replicas %d and %d of %v", raftframe.ErrImplausible, peer, self, s.From, s.To, s.Conf.All())
	}
	return s, err
}

// Install passes a snapshot to raft, which decides whether the group needs it; act continues from there.
func (r *Replica) Install(s *IncomingSnapshot) error {
	if r.incoming != nil {
		s.Reply(fmt.Errorf("%w: another snapshot is being installed", ErrOverloaded))
		return nil
	}
	m := &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), From: &s.From, To: &s.To, Term: &s.Term,
		Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
			Index: &s.Index, Term: &s.EntryTerm, ConfState: s.Conf.ConfState(),
		}},
	}
	err := r.members.roster.check(r.members.roster.peer(s.From), s.From, s.To)
	if err == nil {
		err = r.admit(m)
	}
	if err != nil {
		s.Reply(err)
		return nil
	}
	before, after := uint64(0), uint64(0)
	err = r.guard("step", func() error {
		before = r.raw.BasicStatus().GetCommit()
		err := r.raw.Step(m)
		after = r.raw.BasicStatus().GetCommit()
		return err
	})
	switch {
	case err != nil:
		s.Reply(err)
		return err
	case before >= s.Index:
		s.Reply(nil) // raft reports this node's position to the leader
	case after < s.Index:
		s.Reply(fmt.Errorf("%w: raft refused it", raftframe.ErrImplausible))
	default:
		r.incoming = s
	}
	return nil
}

// prepareInstall prepares the writes of a Ready with a snapshot. A Ready without one means that raft could use its own log.
func (r *Replica) prepareInstall(rd raft.Ready) error {
	s := r.incoming
	if raft.IsEmptySnap(rd.Snapshot) {
		if s != nil {
			r.dropIncoming(nil)
		}
		return nil
	}
	if s == nil || rd.Snapshot.GetMetadata().GetIndex() != s.Index {
		return errors.New("raft returned another snapshot than the received one")
	}
	kept := make(map[string]bool, len(s.Rows))
	for _, row := range s.Rows {
		kept[row.Table+"\x00"+string(row.Key)] = true
	}
	for _, t := range r.tables {
		err := r.node.Storage.Scan(t.Table, t.Prefix, func(key, _ []byte) error {
			if !kept[t.Table+"\x00"+string(key)] {
				s.stale = append(s.stale, kv.Write{Table: t.Table, Key: bytes.Clone(key)})
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("install snapshot: %w", err)
		}
	}
	return nil
}

// installing returns the snapshot in the commit in progress, or nil.
func (r *Replica) installing() *IncomingSnapshot {
	if r.inBatch && !raft.IsEmptySnap(r.ready.Snapshot) {
		return r.incoming
	}
	return nil
}

func (r *Replica) dropIncoming(err error) {
	if r.incoming != nil {
		r.incoming.Reply(err)
		r.incoming = nil
	}
}

// snapshotWrites adds the writes that install a snapshot, except the state record.
func (r *Replica) snapshotWrites(writes []kv.Write, s *IncomingSnapshot) []kv.Write {
	writes = r.log.ResetWrites(writes)
	writes = append(writes, s.stale...)
	writes = append(writes, s.Rows...)
	return append(writes, raftlog.ConfigurationWrite(r.group, s.Conf))
}

// installed updates the replica after a snapshot has become durable.
func (r *Replica) installed(s *IncomingSnapshot) {
	r.log.Reset(s.Index, s.EntryTerm)
	r.conf, r.log.Conf, r.log.Changed = s.Conf, s.Conf, false
	r.members.unstored = nil
	if v := r.members.trusted; v != nil && v.Index <= s.Conf.Index {
		r.members.trusted = nil
	}
	r.positions = positionsAt(s.Index)
	r.publishRoster()
	r.handle.pushRestored(NewConfigured(s.Conf), s.Index)
	r.effects.Clock = ClockStart
	r.logger.Info("snapshot installed", "index", s.Index, "rows", len(s.Rows))
	r.dropIncoming(nil)
}
