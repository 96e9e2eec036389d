package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// This file has the calls about groups that are stored, open or not, and the changes to those that are not open.

// Has reports whether this node stores the group, open or not. A removed group is not stored.
func (h *Host) Has(group uint64) (bool, error) { return raftlog.Has(h.node.Storage, group) }

// Groups returns the groups that this node stores, open or not, ascending.
func (h *Host) Groups() ([]uint64, error) { return raftlog.Groups(h.node.Storage) }

// Position describes what this node stores of a group: how far its copy has come, and its members.
type Position struct {
	Replica  uint64 // this node's replica id; 0 if it is no longer a member
	Term     uint64
	Last     uint64 // index of the last entry in the log, and its term
	LastTerm uint64
	Commit   uint64
	Applied  uint64
	Members  Configured
}

// Position reads what is stored of a group, open or not. The newest data of an open group may not be stored yet. It
// costs a read of the group's log, and may be called from any goroutine. The error is ErrNotOpen if this node stores
// nothing of the group, ErrTombstone, kv.ErrDamaged, or one of the storage's.
func (h *Host) Position(group uint64) (Position, error) {
	p, err := h.position(group)
	if err != nil {
		return Position{}, fmt.Errorf("position of group %d: %w", group, err)
	}
	return p, nil
}

func (h *Host) position(group uint64) (p Position, err error) {
	err = raftlog.ReadView(h.node.Storage, func(r raftlog.Reader) error {
		s, conf, err := raftlog.LoadState(r, group)
		switch {
		case err != nil:
			return err
		case conf == nil:
			return ErrNotOpen
		}
		l, err := raftlog.LoadLog(r, group, s, conf)
		if err != nil {
			return err
		}
		p = Position{
			Replica: conf.OwnID(h.node.Self), Term: s.Term, Last: l.Last, Commit: s.Commit, Applied: s.Applied,
			Members: raftgroup.NewConfigured(conf),
		}
		p.LastTerm, err = l.Term(l.Last)
		return err
	})
	return p, err
}

// CheckStored reads everything that is stored of a group's log and state, as of one moment, and returns an error if any
// of it is invalid. The group may be open.
func (h *Host) CheckStored(group uint64) error {
	if _, err := h.position(group); err != nil && !errors.Is(err, ErrTombstone) && !errors.Is(err, ErrNotOpen) {
		return fmt.Errorf("check group %d: %w", group, err)
	}
	return nil
}

// Remove deletes everything that this node stores of a group that is not open, together with the writes in also (the
// owner's own tables), in one transaction, and leaves a tombstone: the group cannot be opened here again, only joined
// under a later replica id. It blocks until that is durable. The error is ErrOpen, ErrStopped, or one of the storage's.
func (h *Host) Remove(group uint64, also ...kv.Write) error {
	return h.rewrite("remove", group, h.removal(group, also))
}

func (h *Host) removal(group uint64, also []kv.Write) func() ([]kv.Write, error) {
	return func() ([]kv.Write, error) {
		writes, err := raftlog.Remove(h.node.Storage, h.node.Self, group)
		return slices.Concat(also, writes), err
	}
}

// Discard is Remove for a group that cannot be read any more. The other members must have removed this node's replica
// id from the group, so that none of them relies on its promises. Discard leaves a tombstone for that id. It deletes
// every row of the group without reading one. The group must not be open. The error is ErrOpen, ErrStopped, or one of
// the storage's.
func (h *Host) Discard(group, id uint64, also ...kv.Write) error {
	return h.rewrite("discard", group, h.discarding(group, id, also))
}

func (h *Host) discarding(group, id uint64, also []kv.Write) func() ([]kv.Write, error) {
	return func() ([]kv.Write, error) {
		writes, err := raftlog.Discard(h.node.Storage, group, id)
		return slices.Concat(also, writes), err
	}
}

// Recover makes this node the only member of a group that is not open, under a new replica id. It is for operators who
// have permanently lost a majority of the group's members. It blocks until that is durable. The error is ErrOpen,
// ErrTombstone, ErrNotOpen if this node does not store the group or has joined it without ever receiving its state,
// kv.ErrDamaged, ErrStopped, or one of the storage's.
//
// What may be lost: every acknowledged entry that is not in this node's log. A majority has each of them, but this node
// need not be in it. So first compare Status.Last of all surviving members, and recover the group where it is highest
// (among equals, where the term of the last entry is highest). What may reappear: entries at the end of this node's log
// that were never acknowledged.
//
// The group counts its recoveries (Configured.Recovered). Of two groups with the same number, the one with more
// recoveries is authoritative.
//
// The other members must never run again with their stored data. If they are not lost after all, they form another
// group of the same number, which continues on its own. They must be removed (Host.Remove) before they join again.
func (h *Host) Recover(group uint64) error {
	var r raftlog.Recovery
	err := h.rewrite("recover", group, func() (writes []kv.Write, err error) {
		r, writes, err = raftlog.Recover(h.node.Storage, h.node.Self, group)
		return writes, err
	})
	if err == nil {
		h.node.Logger.Warn("group recovered on this node alone", "group", group, "replica", r.After.Own,
			"members_before", r.Before.All(), "commit", r.State.Commit, "last", r.Last)
	}
	return err
}

// Restore makes this node the only member of a group that is not open, with the owner's rows in also, which come from
// elsewhere: from a backup, or nowhere. It replaces everything that is stored of the group, a tombstone included. The
// other members must never run again with their stored data (see Recover). It blocks until that is durable. The error
// is ErrOpen, ErrStopped, or one of the storage's.
func (h *Host) Restore(group uint64, from Origin, also ...kv.Write) error {
	return h.rewrite("restore", group, func() ([]kv.Write, error) {
		_, writes, err := Restoration(h.node.Storage, h.node.Self, group, from)
		return slices.Concat(also, writes), err
	})
}

// Fork makes this node a member of a group that begins with an entry in another group's log, with the owner's rows in
// also. The owner of that other group calls it on every member when it applies the entry, before it reports the entry
// as applied: after a crash it calls it again, which is why it does nothing if the group began here before, even if it
// was removed since. It blocks until that is durable. The error is ErrStopped, or one of the storage's.
func (h *Host) Fork(f Fork, also ...kv.Write) error {
	err := h.rewrite("begin", f.Group, func() ([]kv.Write, error) {
		writes, err := f.Begin(h.node.Storage, h.node.Self)
		return slices.Concat(also, writes), err
	})
	for _, begun := range []error{raftlog.ErrStored, ErrTombstone, ErrOpen} {
		if errors.Is(err, begun) {
			return nil
		}
	}
	return err
}

// rewrite makes Run store the writes that change a group that is not open, and waits for that.
func (h *Host) rewrite(doing string, group uint64, writes func() ([]kv.Write, error)) error {
	reply := make(chan error, 1)
	h.input.post(func() { reply <- h.rewriteNow(group, writes) })
	var err error
	select {
	case err = <-reply:
	case <-h.stopped:
		err = ErrStopped
	}
	if err != nil {
		return fmt.Errorf("%s group %d: %w", doing, group, err)
	}
	return nil
}

func (h *Host) rewriteNow(group uint64, writes func() ([]kv.Write, error)) error {
	if err := h.checkClosed(group); err != nil {
		return err
	}
	all, err := writes()
	if err != nil {
		return err
	}
	return h.committer.store(all, 0)
}

// Replicas returns the replica ids under which the storage of the node self has each group. Groups that cannot be read,
// and those that it is no longer a member of, are left out.
func Replicas(storage Storage, self string) (map[uint64]uint64, error) {
	groups, err := raftlog.Groups(storage)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	all := make(map[uint64]uint64, len(groups))
	for _, group := range groups {
		_, conf, err := raftlog.LoadState(storage, group)
		if err != nil && !errors.Is(err, kv.ErrDamaged) && !errors.Is(err, ErrTombstone) {
			return nil, fmt.Errorf("read the replica of group %d: %w", group, err)
		}
		if err == nil && conf != nil && conf.OwnID(self) != 0 {
			all[group] = conf.OwnID(self)
		}
	}
	return all, nil
}

// GroupPeers returns the other members of the groups that the storage of the node self has. Groups that cannot be read
// are left out.
func GroupPeers(storage Storage, self string) ([]string, error) {
	groups, err := raftlog.Groups(storage)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	var all []string
	for _, group := range groups {
		_, conf, err := raftlog.LoadState(storage, group)
		if err != nil && !errors.Is(err, kv.ErrDamaged) && !errors.Is(err, ErrTombstone) {
			return nil, fmt.Errorf("read the members of group %d: %w", group, err)
		}
		if err == nil && conf != nil {
			for _, m := range conf.All() {
				all = append(all, m.Peer)
			}
		}
	}
	return distinct(all, self), nil
}

// IsOpen reports whether a group is open on a host.
func (h *Host) IsOpen(group uint64) bool { return h.input.open(group) != nil }

// OpenGroupPeers returns the other members of the groups that are open on a host.
func (h *Host) OpenGroupPeers() []string {
	var all []string
	for _, g := range h.input.allOpen() {
		all = append(all, g.Members()...)
	}
	return distinct(all, h.node.Self)
}

// distinct sorts peers, and removes duplicates and self.
func distinct(peers []string, self string) []string {
	slices.Sort(peers)
	return slices.DeleteFunc(slices.Compact(peers), func(peer string) bool { return peer == self })
}
