package region

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// SnapshotProtocol names the streams that carry one snapshot each, without the world's prefix: the group, 8 bytes big-endian,
	// then the snapshot as package replica writes it; one byte comes back, 0 if it was installed.
	SnapshotProtocol = "/snapshot/1"

	// snapshotTime bounds the transfer of one snapshot.
	snapshotTime = 2 * time.Minute
	// maxWaking bounds how many groups are opened at once because a member sent a message to them.
	maxWaking = 64
	// maxWakingPerPeer bounds how many of them one peer can cause.
	maxWakingPerPeer = 16
)

// SendSnapshot opens a stream to the peer, has write fill it, and calls done with the result.
func (c *Carrier) SendSnapshot(peer string, group uint64, write func(io.Writer) error, done func(error)) {
	started := c.start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, snapshotTime)
		defer cancel()
		done(c.snapshot(ctx, peer, group, write))
	})
	if !started {
		done(errStopping)
	}
}

func (c *Carrier) snapshot(ctx context.Context, peer string, group uint64, write func(io.Writer) error) error {
	stream, err := c.peers.Open(ctx, peer, SnapshotProtocol)
	if err != nil {
		return err
	}
	link := newRemoteLink(stream)
	stop := context.AfterFunc(ctx, link.abort)
	defer stop()
	defer stream.Close() //nolint:errcheck // the exchange is complete
	if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, group)); err != nil {
		return fmt.Errorf("send snapshot: %w", err)
	}
	if err := write(stream); err != nil {
		link.abort()
		return err
	}
	var taken [1]byte
	if _, err := io.ReadFull(stream, taken[:]); err != nil {
		return fmt.Errorf("receive reply to snapshot: %w", err)
	}
	if taken[0] != 0 {
		return fmt.Errorf("%s refused the snapshot", peer)
	}
	return nil
}

// ServeSnapshot installs the snapshot that another node sends.
func (h *Host) ServeSnapshot(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	remote := newRemoteLink(stream)
	stop := context.AfterFunc(ctx, remote.abort)
	defer stop()
	var group [8]byte
	_, err := io.ReadFull(remote.in, group[:])
	if err == nil {
		err = h.installSnapshot(ctx, peer, binary.BigEndian.Uint64(group[:]), remote.in)
	}
	answer := []byte{0}
	if err != nil {
		h.Logger.Warn("snapshot not installed", "peer", peer, "error", err)
		answer[0] = 1
	}
	if _, err := stream.Write(answer); err != nil {
		h.Logger.Debug("answer snapshot", "peer", peer, "error", err)
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
	remote := newRemoteLink(stream)
	stop := context.AfterFunc(ctx, remote.abort)
	defer stop()
	in := nodemsg.RaftReader{R: bufio.NewReaderSize(stream, 64<<10)}
	for {
		messages, err := in.Read()
		if err != nil {
			h.Logger.Debug("raft stream ended", "peer", peer, "error", err)
			return
		}
		for _, m := range messages {
			h.receive(peer, m)
		}
	}
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
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
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
