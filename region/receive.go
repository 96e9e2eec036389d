package region

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// maxWaking bounds how many groups are opened at once because a member sent a message to them.
	maxWaking = 64
	// maxWakingPerPeer bounds how many of them one peer can cause.
	maxWakingPerPeer = 16
)

// ServeSnapshot installs the snapshot that another node sends.
func (h *Host) ServeSnapshot(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	err := transport.ServeSnapshot(ctx, stream, func(ctx context.Context, group uint64, in io.Reader) error {
		return h.installSnapshot(ctx, peer, group, in)
	})
	if err != nil {
		h.Logger.Warn("snapshot not installed", "peer", peer, "error", err)
	}
}

func (h *Host) installSnapshot(ctx context.Context, peer string, group uint64, in io.Reader) error {
	err := h.Replicas.ReceiveSnapshot(ctx, peer, group, in)
	if !errors.Is(err, replica.ErrNotOpen) { // it returns that before it reads
		return err
	}
	if err := h.wake(ctx, peer, group); err != nil {
		return err
	}
	return h.Replicas.ReceiveSnapshot(ctx, peer, group, in)
}

// ServeRaft receives the raft messages of another node until the node ends the stream.
func (h *Host) ServeRaft(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	h.checkReturned(peer)
	err := transport.ServeRaft(ctx, stream, func(m nodemsg.RaftMessage) { h.receive(peer, m) })
	h.Logger.Debug("raft stream ended", "peer", peer, "error", err)
}

// receive passes a message to its group. If the group is not open and the sender is a member of it, the group is opened beside
// the stream; messages that arrive meanwhile are dropped, since raft retransmits them. The same holds for a sender that the group
// does not know as a member yet. The message is valid until receive returns.
func (h *Host) receive(peer string, m nodemsg.RaftMessage) {
	err := h.Replicas.Receive(peer, m.Group, m.Data)
	if err == nil {
		return
	}
	var mend func(ctx context.Context, peer string, group uint64) error
	switch {
	case errors.Is(err, replica.ErrNotOpen):
		mend = h.wake
	case errors.Is(err, replica.ErrNotMember):
		mend = h.admitSender
	default:
		h.Logger.Debug("raft message refused", "peer", peer, "group", m.Group, "error", err)
		return
	}
	if !h.beginWaking(peer, m.Group) {
		return
	}
	m.Data = bytes.Clone(m.Data)
	started := h.start(func(ctx context.Context) {
		defer h.endWaking(m.Group)
		ctx, cancel := context.WithTimeout(ctx, transport.AskTimeout)
		defer cancel()
		err := mend(ctx, peer, m.Group)
		if err == nil {
			err = h.Replicas.Receive(peer, m.Group, m.Data)
		}
		if err != nil {
			h.Logger.Debug("raft message refused", "peer", peer, "group", m.Group, "error", err)
		}
	})
	if !started {
		h.endWaking(m.Group)
	}
}

// beginWaking reports whether the group may be woken now. It may not if it is being woken already, has just begun to hibernate,
// or too many groups are being woken, in total or by this peer.
func (h *Host) beginWaking(peer string, group uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until, sleeps := h.mu.hibernating[group]; sleeps && time.Now().Before(until) {
		return false
	}
	delete(h.mu.hibernating, group)
	if _, under := h.mu.waking[group]; under || len(h.mu.waking) >= maxWaking {
		return false
	}
	fromPeer := 0
	for _, by := range h.mu.waking {
		if by == peer {
			fromPeer++
		}
	}
	if fromPeer >= maxWakingPerPeer {
		return false
	}
	h.mu.waking[group] = peer
	return true
}

func (h *Host) endWaking(group uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mu.waking, group)
}

// admitSender makes an open group accept messages of members that are not in its log yet, if the catalog lists them: this node
// was away while they became members.
func (h *Host) admitSender(ctx context.Context, peer string, group uint64) error {
	l := h.loop(group)
	if l == nil {
		return ErrNotHere // the catalog's own members are recorded only in its own log
	}
	info, err := h.Directory.byID(ctx, group)
	if err != nil {
		return err
	}
	if !hasMember(info, peer) {
		return fmt.Errorf("accept messages of %s: not a member of region %d", peer, group)
	}
	conf := replica.Configured{Index: info.Epoch % recoveredEpoch, Recovered: info.Epoch / recoveredEpoch}
	if conf.Recovered != l.raft.Configuration().Recovered {
		return fmt.Errorf("accept messages of %s: the copy of region %d belongs to another group", peer, group)
	}
	for _, m := range info.Members {
		if m.Replica == 0 {
			return fmt.Errorf("accept messages of %s: the replicas of region %d are unknown", peer, group)
		}
		conf.Members = append(conf.Members, replica.Member{ID: m.Replica, Peer: m.Peer, Learner: m.Learner})
	}
	return l.raft.TrustMembers(conf)
}

// wake opens a group because one of its members sent a message to it.
func (h *Host) wake(ctx context.Context, peer string, group uint64) error {
	if group == world.CatalogID {
		return ErrNotHere // on its members it is always open
	}
	if h.failures.quarantined(group) {
		return errQuarantined
	}
	info, err := h.membership(ctx, group)
	if err != nil {
		return err
	}
	if !hasMember(info, peer) { // it may have become a member while the group hibernated here
		if info, err = h.Directory.byID(ctx, group); err != nil {
			return fmt.Errorf("wake region %d: %w", group, err)
		}
	}
	if !hasMember(info, peer) {
		return fmt.Errorf("wake region %d: %s is not a member", group, peer)
	}
	if _, err = h.loaded(ctx, nodemsg.Hello{Region: group, Cell: info.Cell}); err != nil {
		return err
	}
	h.metrics.woken.Inc()
	return nil
}
