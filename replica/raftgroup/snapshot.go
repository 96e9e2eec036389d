package raftgroup

import (
	"io"
	"log/slog"
	"slices"
	"sync"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// maxSending is the number of snapshots that a node sends at a time.
const maxSending = 2

// maxDoublings is how often the time doubles, from two ticks, after which a snapshot that failed is sent again: the
// receiver may refuse all of them.
const maxDoublings = 6

// snapshotSender sends snapshots of one group. Owned by Host.Run.
type snapshotSender struct {
	node    *Node
	logger  *slog.Logger
	all     raftframe.OutgoingSnapshot // what all snapshots have in common: not To and Term
	sending sending
	failed  map[uint64]int // replica id of the receiver → how many snapshots in a row have failed
	untold  []uint64       // receivers of whose last failure raft is not informed yet: it would send another one at once
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
		if s.failed == nil {
			s.failed = make(map[uint64]int)
		}
		s.failed[to]++
		s.untold = append(s.untold, to)
		return
	}
	delete(s.failed, to)
}

// retry informs raft of the failures that are due.
func (s *snapshotSender) retry(raw *raft.RawNode, ticks uint64) {
	s.untold = slices.DeleteFunc(s.untold, func(to uint64) bool {
		due := ticks%(1<<min(s.failed[to], maxDoublings)) == 0
		if due {
			raw.ReportSnapshot(to, raft.SnapshotFailure)
		}
		return due
	})
}

// keep returns the index up to which the log may be cut. The entries that follow a snapshot in progress stay, down to
// least, because the snapshot is useless without them.
func (s sending) keep(cut, least uint64) uint64 {
	for _, index := range s {
		cut = min(cut, index)
	}
	return max(cut, least)
}
