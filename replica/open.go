package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Founding describes a new group. All its first members must be given the same one.
type Founding struct {
	Group   uint64   // never 0, unique forever
	Members []string // peer ids; their order gives them their replica ids, 1 to n
	// Tables select the owner's state: the rows that snapshots carry and replace. Only ReportApplied writes them (and
	// the caller that fills them before the group is first opened). They are the same on all members. Nil if the group
	// never sends or receives a snapshot: it then has no members but the founders, and none of them may fall far
	// behind.
	Tables []TablePrefix
}

// JoinInfo describes how a node becomes a member of a group that was founded without it.
type JoinInfo struct {
	Group   uint64
	ID      uint64        // the replica id that the group assigned to this node, from Configured
	Members []Member      // the newest known configuration, including this node
	Tables  []TablePrefix // as in Founding
}

// Open opens a group. If this node never had it, it is founded, durably. Otherwise it resumes from what is stored, and
// the stored configuration takes precedence over the founding's members (which may then be empty). A group of one
// campaigns at once: Leadership{Self: true} is delivered within a few fsyncs. The error is ErrOpen, ErrTombstone,
// ErrNotMember, kv.ErrDamaged, ErrStorage, ErrStopped, the context's, or one of the storage's reads.
func (h *Host) Open(ctx context.Context, f Founding) (*Group, error) {
	return h.awaitOpen(ctx, fmt.Sprintf("open group %d", f.Group), func(reply func(*Group, error)) { h.open(f, reply) })
}

// Join opens a group of which this node stores nothing: an empty replica that waits for a snapshot from the leader. The
// caller must have verified with an authority that the group's committed configuration lists this node as replica ID. A
// node that has lost its disk must be removed and added again, under a new id. The owner's tables must be empty, or
// contain only rows that the snapshot will replace.
//
// A replica that was already joined under this id is simply opened. AppliedIndex is 0 until Restored is delivered. The
// error is ErrReplaced if the node stores the group under an earlier id. It is ErrTombstone if the node stores the
// group under a later id, or was removed under this id or a later one. Otherwise the errors are those of Open.
func (h *Host) Join(ctx context.Context, j JoinInfo) (*Group, error) {
	return h.awaitOpen(ctx, fmt.Sprintf("join group %d", j.Group), func(reply func(*Group, error)) { h.join(j, reply) })
}

// awaitOpen makes Run call open, and waits for its reply.
func (h *Host) awaitOpen(ctx context.Context, doing string, open func(reply func(*Group, error))) (*Group, error) {
	type result struct {
		group *Group
		err   error
	}
	reply := make(chan result, 1)
	h.input.post(func() {
		open(func(g *Group, err error) { reply <- result{g, err} })
	})
	select {
	case r := <-reply:
		if r.err != nil {
			return nil, fmt.Errorf("%s: %w", doing, r.err)
		}
		return r.group, nil
	case <-h.stopped:
		return nil, fmt.Errorf("%s: %w", doing, ErrStopped)
	case <-ctx.Done():
		// The caller has gone, so close what is being opened.
		var abandon func()
		abandon = func() {
			select {
			case r := <-reply:
				if r.err == nil {
					h.closeGroup(r.group, make(chan error, 1))
				}
			default:
				h.input.post(abandon) // its founding is in the next commit
			}
		}
		h.input.post(abandon)
		return nil, fmt.Errorf("%s: %w", doing, ctx.Err())
	}
}

func (h *Host) open(f Founding, reply func(*Group, error)) {
	s, conf, err := h.loadClosed(f.Group, f.Tables)
	switch {
	case err != nil:
		reply(nil, err)
		return
	case conf != nil:
		h.resume(f.Group, s, conf, f.Tables, reply)
		return
	}
	if s, conf, err = raftlog.Found(h.node.Self, f.Members); err != nil {
		reply(nil, err)
		return
	}
	writes := []kv.Write{raftlog.StateWrite(f.Group, s), raftlog.ConfigurationWrite(f.Group, conf)}
	h.create(f.Group, writes, reply, func() { h.resume(f.Group, s, conf, f.Tables, reply) })
}

func (h *Host) join(j JoinInfo, reply func(*Group, error)) {
	s, conf, err := h.loadClosed(j.Group, j.Tables)
	if errors.Is(err, ErrTombstone) {
		err = nil // raftlog.Join compares the replica ids
	}
	switch {
	case err != nil:
		reply(nil, err)
	case conf == nil:
		joined, writes, err := raftlog.Join(h.node.Storage, h.node.Self, j.Group, j.ID, j.Members)
		if err != nil {
			reply(nil, err)
			return
		}
		h.create(j.Group, writes, reply, func() { h.resume(j.Group, raftlog.State{}, joined, j.Tables, reply) })
	case conf.OwnID(h.node.Self) > j.ID: // a late invitation must not destroy the present replica
		reply(nil, fmt.Errorf("%w as replica %d: it is stored as %d", ErrTombstone, j.ID, conf.OwnID(h.node.Self)))
	case conf.OwnID(h.node.Self) != j.ID:
		reply(nil, fmt.Errorf("%w: it is stored as replica %d, joined as %d", ErrReplaced, conf.OwnID(h.node.Self), j.ID))
	default:
		h.resume(j.Group, s, conf, j.Tables, reply)
	}
}

// loadClosed loads a group that is about to be opened; the configuration is nil if this node never had it.
func (h *Host) loadClosed(group uint64, tables []TablePrefix) (raftlog.State, *raftlog.Configuration, error) {
	if group == 0 {
		return raftlog.State{}, nil, errors.New("group number 0 is invalid")
	}
	if err := errors.Join(h.checkClosed(group), raftlog.CheckTables(tables)); err != nil {
		return raftlog.State{}, nil, err
	}
	return raftlog.LoadState(h.node.Storage, group)
}

// checkClosed returns ErrOpen if the group is open, or about to be.
func (h *Host) checkClosed(group uint64) error {
	if h.groups.replicas[group] != nil ||
		slices.ContainsFunc(h.committer.founding, func(f *founding) bool { return f.group == group }) {
		return ErrOpen
	}
	return nil
}

// create stores a new group's writes with the next commit, and then calls resume.
func (h *Host) create(group uint64, writes []kv.Write, reply func(*Group, error), resume func()) {
	if err := h.committer.stall; err != nil {
		reply(nil, err)
		return
	}
	h.committer.founding = append(h.committer.founding, &founding{group: group, writes: writes, done: func(err error) {
		if err != nil {
			reply(nil, err)
		} else {
			resume()
		}
	}})
}

// resume opens a stored group.
func (h *Host) resume(group uint64, s raftlog.State, conf *raftlog.Configuration, tables []TablePrefix, reply func(*Group, error)) {
	opened, err := raftgroup.NewReplica(h.node, group, s, conf, tables)
	if err == nil && h.committer.stall == nil {
		err = opened.Start()
	}
	if err != nil {
		reply(nil, err)
		return
	}
	r := &hosted{Replica: opened}
	h.groups.add(r)
	if h.committer.stall != nil {
		r.Stall(h.committer.stall)
	}
	h.committer.settle(r)
	h.committer.markDirty(r)
	reply(r.Group(), nil)
}

// closeAndWait is Group.Close.
func (h *Host) closeAndWait(g *Group) error {
	reply := make(chan error, 1)
	h.input.post(func() { h.closeGroup(g, reply) })
	select {
	case err := <-reply:
		return err
	case <-h.stopped:
		select {
		case err := <-reply:
			return err
		default:
			return nil // the host flushed or failed every group when it stopped
		}
	}
}

// closeGroup removes a group from memory, after its next commit if it has applied writes to store.
func (h *Host) closeGroup(g *Group, reply chan<- error) {
	r := h.groups.get(g)
	if r == nil {
		reply <- nil
		return
	}
	h.closing = append(h.closing, closing{r: r, reply: reply})
	if r.HasUnstored() {
		h.committer.flushDue = true
		h.committer.storeLater(r)
	}
}

// finishClosing removes the closed groups from memory. Their data has been stored by now, unless storage refuses.
func (h *Host) finishClosing() {
	for _, c := range h.closing {
		var err error
		if !c.r.ended && c.r.HasUnstored() {
			err = fmt.Errorf("close group %d: %w", c.r.Group().ID(), h.committer.stall)
		}
		h.committer.drop(c.r, ErrClosed, nil)
		c.reply <- err
	}
	h.closing = nil
}
