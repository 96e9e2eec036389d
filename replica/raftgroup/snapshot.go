package raftgroup

import (
	"io"
	"log/slog"
	"sync"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// maxSending is the number of snapshots that a node sends at a time.
const maxSending = 2

// retryTicks is how often failures are reported to raft, which then sends another snapshot at once. The receiver may refuse all of them.
const retryTicks = 20

// snapshotSender sends snapshots of one group. Owned by Host.Run.
type snapshotSender struct {
	node    *Node
	logger  *slog.Logger
	all     raftframe.OutgoingSnapshot // what all snapshots have in common: not To and Term
	sending sending
	failed  []uint64 // receivers whose snapshots have failed, and raft does not know it yet
}

// sending is the snapshots that are being sent.
type sending map[uint64]uint64 // replica id of the receiver → the index below which the log must be kept meanwhile

// head returns the head of a snapshot, for raft. The snapshot sent later may be newer: raft relies on the position that
// the receiver reports. Applied is the stored applied index.
func (s *snapshotSender) head(log *raftlog.Log, applied uint64) (*raftpb.Snapshot, error) {
	if s.node.SendSnapshot == nil || s.all.Tables == nil || s.node.Sending >= maxSending || applied == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	term, err := log.Term(applied)
	if err != nil {
		return nil, err
	}
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
		Index: &applied, Term: &term, ConfState: log.Conf.ConfState(),
	}}, nil
}

// send has the network open a stream to the peer and write a snapshot to it. Done is called once, from any goroutine.
func (s *snapshotSender) send(peer string, m *raftpb.Message, done func(error)) {
	to := m.GetTo()
	s.node.Sending++
	if s.sending == nil {
		s.sending = make(sending)
	}
	s.sending[to] = m.GetSnapshot().GetMetadata().GetIndex()
	out := s.all
	out.To, out.Term = to, m.GetTerm()
	var once sync.Once
	write := func(w io.Writer) error { return out.Write(s.node.Storage, w) }
	s.logger.Info("sending a snapshot", "peer", peer, "index", s.sending[to])
	s.node.SendSnapshot(peer, out.Group, write, func(err error) { once.Do(func() { done(err) }) })
}

// sent records that a snapshot was sent, or could not be.
func (s *snapshotSender) sent(to uint64, err error) {
	s.node.Sending--
	delete(s.sending, to)
	if err != nil {
		s.logger.Warn("snapshot not sent", "replica", to, "error", err)
		s.failed = append(s.failed, to)
	}
}

// retry reports the failures.
func (s *snapshotSender) retry(raw *raft.RawNode) {
	for _, to := range s.failed {
		raw.ReportSnapshot(to, raft.SnapshotFailure)
	}
	s.failed = nil
}

// keep returns the index up to which the log may be cut. The entries that follow a snapshot in progress stay, down to
// least, because the snapshot is useless without them.
func (s sending) keep(cut, least uint64) uint64 {
	for _, index := range s {
		cut = min(cut, index)
	}
	return max(cut, least)
}
