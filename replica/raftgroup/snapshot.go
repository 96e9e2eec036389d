package raftgroup

import (
	"io"
	"sync"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
)

// maxSending is the number of snapshots that a node sends at a time.
const maxSending = 2

// sending tracks the snapshots that a replica is sending.
type sending map[uint64]uint64 // replica id of the receiver → the index below which the log must be kept meanwhile

// snapshotHead returns the head of a snapshot, for raft. The snapshot sent later may be newer: raft relies on the
// position that the receiver reports.
func (r *Replica) snapshotHead() (*raftpb.Snapshot, error) {
	if r.node.SendSnapshot == nil || r.tables == nil || r.node.Sending >= maxSending ||
		len(r.members.unstored) > 0 || r.stored.Applied == 0 { // the configuration must include the receiver
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	term, err := r.log.Term(r.stored.Applied)
	if err != nil {
		return nil, err
	}
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
		Index: new(r.stored.Applied), Term: &term, ConfState: r.conf.ConfState(),
	}}, nil
}

// sendSnapshot makes the carrier open a stream, and reports the result to raft.
func (r *Replica) sendSnapshot(peer string, m *raftpb.Message) {
	to := m.GetTo()
	r.node.Sending++
	if r.sending == nil {
		r.sending = make(sending)
	}
	r.sending[to] = m.GetSnapshot().GetMetadata().GetIndex()
	out := raftframe.OutgoingSnapshot{
		Group: r.group, From: r.id, To: to, Term: m.GetTerm(), Tables: r.tables, Limit: r.node.Limits.Snapshot,
	}
	var once sync.Once
	done := func(err error) {
		once.Do(func() { r.node.Call(r.handle, func() error { return r.snapshotSent(to, err) }) })
	}
	write := func(w io.Writer) error { return out.Write(r.node.Storage, w) }
	r.logger.Info("sending a snapshot", "peer", peer, "index", r.sending[to])
	r.node.SendSnapshot(peer, r.group, write, done)
}

// snapshotSent reports to raft that a snapshot was sent, or why not.
func (r *Replica) snapshotSent(to uint64, err error) error {
	r.node.Sending--
	delete(r.sending, to)
	status := raft.SnapshotFinish
	if err != nil {
		r.logger.Warn("snapshot not sent", "replica", to, "error", err)
		status = raft.SnapshotFailure
	}
	if r.raw == nil {
		return nil
	}
	return r.guard("report snapshot", func() error { r.raw.ReportSnapshot(to, status); return nil })
}

// keep returns the index up to which the log may be cut. The entries that follow a snapshot in progress stay, down to
// least, because the snapshot is useless without them.
func (s sending) keep(cut, least uint64) uint64 {
	for _, index := range s {
		cut = min(cut, index)
	}
	return max(cut, least)
}
