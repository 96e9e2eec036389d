package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
)

// Receive accepts a message that the authenticated peer sent for a group. It never blocks and never panics, whatever
// the bytes, and it does not retain them. A message is refused without any effect if it is not from a member of the
// group, or if this member cannot have sent it. The errors are ErrNotOpen (if Has returns true, the owner may open the
// group and receive the message again), ErrNotMember (see TrustMembers), ErrReplaced, ErrImplausible and ErrOverloaded.
// Run later makes the checks that depend on the group's term and log.
//
// Members are those of the committed configuration, those added by a configuration change in this node's log that is
// not yet known to be committed, and those that the owner trusts.
func (h *Host) Receive(peer string, group uint64, message []byte) error {
	err := h.receive(peer, group, message)
	if err != nil {
		h.metrics.rejected.Inc()
		return fmt.Errorf("receive message of %q for group %d: %w", peer, group, err)
	}
	return nil
}

func (h *Host) receive(peer string, group uint64, message []byte) error {
	g := h.input.open(group)
	if g == nil {
		return ErrNotOpen
	}
	return g.Receive(peer, message)
}

// ReceiveSnapshot reads a snapshot that the authenticated peer sends for a group, and blocks until it is installed
// durably: the owner's rows, raft's state, the configuration and the applied index in one commit (rows of tables in
// pieces may come before). The owner gets Restored. ReceiveSnapshot also returns nil if the group had no use for the
// snapshot. A snapshot is refused without any effect if it is not from a member of the group, is malformed or too
// large, or contains rows of other owners: with ErrNotOpen, ErrNotMember, ErrImplausible, ErrReplaced, ErrSnapshotSize
// or ErrOverloaded. The caller bounds the time that reading takes. When the context ends, the snapshot may still be
// installed.
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
	defer func() { h.receiving.add(peer, -taken) }()
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
	g := h.input.open(group)
	if g == nil {
		return 0, ErrNotOpen
	}
	limit := h.node.Limits.Snapshot
	f := filling{Host: h, group: g}
	defer func() {
		if err != nil {
			f.end()
		}
	}()
	s, err := g.ReadSnapshot(peer, r, func(n int) error {
		taken += n
		all, ofPeer := h.receiving.add(peer, n)
		if taken > limit {
			return fmt.Errorf("%w: more than %d bytes", raftframe.ErrSnapshotSize, limit)
		}
		if all > 2*limit || ofPeer > limit {
			return fmt.Errorf("%w: other snapshots are being received", ErrOverloaded)
		}
		return nil
	}, f.store)
	if err != nil {
		return taken, err
	}
	s.Reply = func(err error) {
		f.end()
		reply(err)
	}
	h.input.post(func() { h.install(g, s) })
	return taken, nil
}

// filling stores a snapshot in pieces, for a group that has nothing yet. Nobody uses these rows before the snapshot is
// installed. A snapshot that does not arrive whole leaves rows behind, which the next one removes first.
type filling struct {
	*Host
	group *Group
	begun bool
}

// removedAtOnce is how many rows are removed in one commit.
const removedAtOnce = 10_000

// store stores rows.
func (f *filling) store(rows []kv.Write) error {
	if !f.begun {
		if _, other := f.fills.LoadOrStore(f.group.ID(), f); other {
			return fmt.Errorf("%w: another snapshot is being stored", ErrOverloaded)
		}
		f.begun = true
		if err := f.clear(); err != nil {
			return err
		}
	}
	if !f.group.HasNothing() {
		return fmt.Errorf("%w: the group has entries meanwhile", ErrOverloaded)
	}
	return f.node.Storage.Commit(rows)
}

// clear removes what an earlier snapshot has left.
func (f *filling) clear() error {
	enough := errors.New("enough")
	for _, t := range f.group.Tables() {
		for more := true; more; {
			var old []kv.Write
			err := f.node.Storage.Scan(t.Table, t.Prefix, func(key, _ []byte) error {
				old = append(old, kv.Write{Table: t.Table, Key: bytes.Clone(key)})
				if len(old) == removedAtOnce {
					return enough
				}
				return nil
			})
			if more = errors.Is(err, enough); err == nil || more {
				err = f.node.Storage.Commit(old)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// end allows another snapshot to be stored.
func (f *filling) end() {
	if f.begun {
		f.fills.Delete(f.group.ID())
	}
}

// receiving counts the bytes of snapshots that are being received. One peer may send half of all, so that it cannot
// keep others from sending theirs.
type receiving struct {
	mu    sync.Mutex
	all   int
	peers map[string]int // no zeros
}

// add counts n bytes more of a peer, and returns the sums.
func (r *receiving) add(peer string, n int) (all, ofPeer int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.peers == nil {
		r.peers = make(map[string]int)
	}
	r.all += n
	if r.peers[peer] += n; r.peers[peer] == 0 {
		delete(r.peers, peer)
	}
	return r.all, r.peers[peer]
}

// install passes a snapshot to the group.
func (h *Host) install(g *Group, s *raftgroup.IncomingSnapshot) {
	r := h.groups.get(g)
	switch {
	case r == nil:
		s.Reply(ErrNotOpen)
	case h.committer.stall != nil:
		s.Reply(h.committer.stall)
	default:
		h.committer.try(r, func() error { return r.Install(s) })
	}
}
