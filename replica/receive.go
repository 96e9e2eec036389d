package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// incomingSnapshot is a received snapshot that is to be written into the tables.
type incomingSnapshot struct {
	raftframe.Snapshot
	stale []kv.Write // deletions of the owner's rows that are not in the snapshot
	reply func(error)
}

// ReceiveSnapshot reads a snapshot that the authenticated peer sends for a group, and blocks until it is installed
// durably: the owner's rows, raft's state, the configuration and the applied index in one commit. The owner gets
// Restored. ReceiveSnapshot also returns nil if the group had no use for the snapshot. A snapshot is refused without any
// effect if it is not from a member of the group, is malformed or too large, or contains rows of other owners: with
// ErrNotOpen, ErrNotMember, ErrImplausible, ErrReplaced, ErrSnapshotSize or ErrOverloaded. The caller bounds the time
// that reading takes. When the context ends, the snapshot may still be installed.
func (h *Host) ReceiveSnapshot(ctx context.Context, peer string, group uint64, r io.Reader) error {
	if err := h.receiveSnapshot(ctx, peer, group, r); err != nil {
		h.metrics.rejected.Inc()
		return fmt.Errorf("receive snapshot of %q for group %d: %w", peer, group, err)
	}
	return nil
}

func (h *Host) receiveSnapshot(ctx context.Context, peer string, group uint64, r io.Reader) error {
	answer := make(chan error, 1)
	taken, err := h.unpack(peer, group, r, func(err error) { answer <- err })
	defer h.reserve(-taken)
	if err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-h.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unpack reads a snapshot and makes Run install it, which then calls reply. Taken is the number of bytes of memory that
// it has claimed; they count until it is installed.
func (h *Host) unpack(peer string, group uint64, r io.Reader, reply func(error)) (taken int, err error) {
	h.mu.Lock()
	g := h.mu.open[group]
	h.mu.Unlock()
	if g == nil {
		return 0, ErrNotOpen
	}
	if peer == h.self || !g.roster.Load().includes(peer) {
		return 0, ErrNotMember
	}
	if g.tables == nil {
		return 0, errors.New("the group has no tables for snapshots")
	}
	s := &incomingSnapshot{reply: reply}
	budget := func(n int) error {
		taken += n
		h.reserve(n)
		if taken > h.limits.snapshot {
			return fmt.Errorf("%w: more than %d bytes", raftframe.ErrSnapshotSize, h.limits.snapshot)
		}
		if h.receiving.Load() > 2*int64(h.limits.snapshot) {
			return fmt.Errorf("%w: other snapshots are being received", ErrOverloaded)
		}
		return nil
	}
	admit := func() error { return g.roster.Load().check(peer, s.From, s.To) }
	err = s.Decode(r, g.tables, admit, budget)
	if err == nil && (s.Conf.Peer(s.From) != peer || s.Conf.Peer(s.To) != h.self) {
		err = fmt.Errorf("%w: %q and %q are not replicas %d and %d of %v", raftframe.ErrImplausible, peer, h.self, s.From, s.To, s.Conf.All())
	}
	if err != nil {
		return taken, err
	}
	h.post(func() { h.install(g, s) })
	return taken, nil
}

func (h *Host) reserve(n int) { h.receiving.Add(int64(n)) }

// install passes a snapshot to raft, which decides whether the group needs it; collectReadies continues from there.
func (h *Host) install(g *Group, s *incomingSnapshot) {
	r := h.replicas[g.id]
	switch {
	case r == nil || r.handle != g:
		s.reply(ErrNotOpen)
		return
	case r.node == nil:
		s.reply(h.stall)
		return
	case r.incoming != nil:
		s.reply(fmt.Errorf("%w: another snapshot is being installed", ErrOverloaded))
		return
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
		s.reply(err)
		return
	}
	before, after := uint64(0), uint64(0)
	err = r.guard("step", func() error {
		before = r.node.BasicStatus().GetCommit()
		err := r.node.Step(m)
		after = r.node.BasicStatus().GetCommit()
		return err
	})
	switch {
	case err != nil:
		s.reply(err)
		h.fail(r, err)
		return
	case before >= s.Index:
		s.reply(nil) // raft reports this node's position to the leader
	case after < s.Index:
		s.reply(fmt.Errorf("%w: raft refused it", raftframe.ErrImplausible))
	default:
		r.incoming = s
	}
	h.markDirty(r)
}

// prepareInstall prepares the writes of a Ready with a snapshot. A Ready without one means that raft could use its own log.
func (r *replica) prepareInstall(rd raft.Ready) error {
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
		err := r.host.storage.Scan(t.Table, t.Prefix, func(key, _ []byte) error {
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
func (r *replica) installing() *incomingSnapshot {
	if r.inBatch && !raft.IsEmptySnap(r.ready.Snapshot) {
		return r.incoming
	}
	return nil
}

func (r *replica) dropIncoming(err error) {
	if r.incoming != nil {
		r.incoming.reply(err)
		r.incoming = nil
	}
}

// snapshotWrites adds the writes that install a snapshot, except the state record.
func (r *replica) snapshotWrites(writes []kv.Write, s *incomingSnapshot) []kv.Write {
	writes = r.log.ResetWrites(writes)
	writes = append(writes, s.stale...)
	writes = append(writes, s.Rows...)
	return append(writes, raftlog.ConfigurationWrite(r.group, s.Conf))
}

// installed updates the replica after a snapshot has become durable.
func (r *replica) installed(s *incomingSnapshot) {
	r.log.Reset(s.Index, s.EntryTerm)
	r.conf, r.log.Conf, r.log.Changed = s.Conf, s.Conf, false
	r.members.unstored = nil
	if v := r.members.trusted; v != nil && v.Index <= s.Conf.Index {
		r.members.trusted = nil
	}
	r.applied, r.mailed, r.visible, r.reported, r.advanced = s.Index, s.Index, s.Index, s.Index, s.Index
	r.host.countLag(r, 0)
	r.publishRoster()
	r.handle.pushRestored(configured(s.Conf), s.Index)
	r.host.ticking.start(r)
	r.logger.Info("snapshot installed", "index", s.Index, "rows", len(s.Rows))
	r.dropIncoming(nil)
}
