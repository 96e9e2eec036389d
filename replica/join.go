package replica

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/kv"
)

// ErrReplaced marks that the group knows this node by a later replica id than the one that it stores: it was removed
// and added again without having heard of it. The owner removes the old replica (Host.Remove) and joins with the new id.
var ErrReplaced = errors.New("this node's replica was replaced")

// TablePrefix names rows of an owner's state: those of a table whose keys begin with the prefix, all of the table if
// it is empty.
type TablePrefix struct {
	Table  string
	Prefix []byte
}

// JoinInfo says how a node becomes a member of a group that was founded without it.
type JoinInfo struct {
	Group   uint64
	ID      uint64        // the replica id that the group gave to this node, as Configured said
	Members []Member      // the newest configuration that is known, this node included
	Tables  []TablePrefix // as in Founding
}

// Join opens a group on a node that has nothing of it: an empty replica that waits for a snapshot from the leader. The
// caller has verified, with somebody who knows, that the group's committed configuration has this node as replica ID;
// whoever has lost its disk must be removed and added again, under a new id. The owner's tables must be empty, or be
// rows that the snapshot shall replace.
//
// A replica that was joined before under this id is just opened. AppliedIndex is 0 until Restored is delivered. The
// error is ErrReplaced if the node stores the group under an earlier id, ErrTombstone if it stores it under a later one or
// was removed under this id or a later one, and otherwise as of Open.
func (h *Host) Join(ctx context.Context, j JoinInfo) (*Group, error) {
	return h.opened(ctx, fmt.Sprintf("join group %d", j.Group), func(reply func(*Group, error)) { h.join(j, reply) })
}

func (h *Host) join(j JoinInfo, reply func(*Group, error)) {
	refuse := func(err error) { reply(nil, fmt.Errorf("join group %d: %w", j.Group, err)) }
	if err := h.openable(j.Group, j.Tables); err != nil {
		refuse(err)
		return
	}
	s, conf, err := h.load(j.Group)
	switch {
	case err != nil && !errors.Is(err, ErrTombstone):
		refuse(err)
	case conf != nil && conf.own(h.self) > j.ID: // an invitation that comes late must not cost the replica of now
		refuse(fmt.Errorf("%w as replica %d: it is stored as %d", ErrTombstone, j.ID, conf.own(h.self)))
	case conf != nil && conf.own(h.self) != j.ID:
		refuse(fmt.Errorf("%w: it is stored as replica %d, joined as %d", ErrReplaced, conf.own(h.self), j.ID))
	case conf != nil:
		h.resume(j.Group, s, conf, j.Tables, func(g *Group, err error) {
			if err != nil {
				refuse(err)
				return
			}
			reply(g, nil)
		})
	case h.stall != nil:
		refuse(h.stall)
	default:
		f, err := h.joining(j)
		if err != nil {
			refuse(err)
			return
		}
		f.reply = reply
		h.founding = append(h.founding, f)
	}
}

// joining prepares what stores an empty replica.
func (h *Host) joining(j JoinInfo) (*founding, error) {
	tombstone := stateKey(j.Group, kindTombstone)
	value, err := h.storage.Get(tableState, tombstone)
	if err != nil {
		return nil, err
	}
	if len(value) == 8 && binary.BigEndian.Uint64(value) >= j.ID && !mutated("skip-tombstones") {
		return nil, fmt.Errorf("%w, as replica %d", ErrTombstone, binary.BigEndian.Uint64(value))
	}
	conf := &configuration{Own: j.ID}
	for _, m := range j.Members {
		list := &conf.Members
		if m.Learner {
			list = &conf.Learners
		}
		*list = append(*list, member{ID: m.ID, Peer: m.Peer})
		conf.Next = max(conf.Next, m.ID+1)
	}
	for _, list := range [...][]member{conf.Members, conf.Learners} {
		slices.SortFunc(list, func(a, b member) int { return cmp.Compare(a.ID, b.ID) })
	}
	if err := conf.check(); err != nil {
		return nil, err
	}
	if j.ID == 0 || conf.id(h.self) != j.ID {
		return nil, fmt.Errorf("%w: %q is not replica %d among %v", ErrNotMember, h.self, j.ID, j.Members)
	}
	encoded, err := encodeConfiguration(conf)
	if err != nil {
		return nil, err
	}
	return &founding{group: j.Group, conf: conf, tables: j.Tables, writes: []kv.Write{
		{Table: tableState, Key: tombstone},
		{Table: tableState, Key: stateKey(j.Group, kindState), Value: encodeState(state{})},
		{Table: tableState, Key: stateKey(j.Group, kindConfig), Value: encoded},
	}}, nil
}

// openable says why a group cannot be opened or joined, as far as that does not depend on what is stored.
func (h *Host) openable(group uint64, tables []TablePrefix) error {
	if group == 0 {
		return errors.New("0 is no group")
	}
	if h.replicas[group] != nil ||
		slices.ContainsFunc(h.founding, func(other *founding) bool { return other.group == group }) {
		return ErrOpen
	}
	if len(tables) > maxTables {
		return fmt.Errorf("%d tables, at most %d are possible", len(tables), maxTables)
	}
	for _, t := range tables {
		if t.Table == "" || t.Table == tableLog || t.Table == tableState {
			return fmt.Errorf("table %q cannot be an owner's", t.Table)
		}
		if len(t.Table) > maxTableName || len(t.Prefix) > maxTableName {
			return fmt.Errorf("table %.20q: name or prefix is longer than %d bytes", t.Table, maxTableName)
		}
	}
	return nil
}
