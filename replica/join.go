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

// ErrReplaced marks that the group gave this node a later replica id than the stored one: the node was removed and added
// again without noticing. The owner removes the old replica (Host.Remove) and joins with the new id.
var ErrReplaced = errors.New("this node's replica was replaced")

// TablePrefix selects rows of an owner's state: those of a table whose keys begin with the prefix; all rows if the prefix
// is empty.
type TablePrefix struct {
	Table  string
	Prefix []byte
}

// JoinInfo describes how a node becomes a member of a group that was founded without it.
type JoinInfo struct {
	Group   uint64
	ID      uint64        // the replica id that the group assigned to this node, from Configured
	Members []Member      // the newest known configuration, including this node
	Tables  []TablePrefix // as in Founding
}

// Join opens a group of which this node stores nothing: an empty replica that waits for a snapshot from the leader. The
// caller must have verified with an authority that the group's committed configuration lists this node as replica ID. A
// node that has lost its disk must be removed and added again, under a new id. The owner's tables must be empty, or
// contain only rows that the snapshot will replace.
//
// A replica that was already joined under this id is simply opened. AppliedIndex is 0 until Restored is delivered. The
// error is ErrReplaced if the node stores the group under an earlier id. It is ErrTombstone if the node stores the group
// under a later id, or was removed under this id or a later one. Otherwise the errors are those of Open.
func (h *Host) Join(ctx context.Context, j JoinInfo) (*Group, error) {
	return h.awaitOpen(ctx, fmt.Sprintf("join group %d", j.Group), func(reply func(*Group, error)) { h.join(j, reply) })
}

func (h *Host) join(j JoinInfo, reply func(*Group, error)) {
	refuse := func(err error) { reply(nil, fmt.Errorf("join group %d: %w", j.Group, err)) }
	if err := h.checkOpenable(j.Group, j.Tables); err != nil {
		refuse(err)
		return
	}
	s, conf, err := h.load(j.Group)
	switch {
	case err != nil && !errors.Is(err, ErrTombstone):
		refuse(err)
	case conf != nil && conf.own(h.self) > j.ID: // a late invitation must not destroy the present replica
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
		f, err := h.prepareJoin(j)
		if err != nil {
			refuse(err)
			return
		}
		f.reply = reply
		h.founding = append(h.founding, f)
	}
}

// prepareJoin prepares the writes that store an empty replica.
func (h *Host) prepareJoin(j JoinInfo) (*founding, error) {
	tombstone := stateKey(j.Group, kindTombstone)
	value, err := h.storage.Get(tableState, tombstone)
	if err != nil {
		return nil, err
	}
	if len(value) == 8 && binary.BigEndian.Uint64(value) >= j.ID {
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

// checkOpenable returns an error if a group cannot be opened or joined, whatever is stored.
func (h *Host) checkOpenable(group uint64, tables []TablePrefix) error {
	if group == 0 {
		return errors.New("group number 0 is invalid")
	}
	if h.replicas[group] != nil ||
		slices.ContainsFunc(h.founding, func(other *founding) bool { return other.group == group }) {
		return ErrOpen
	}
	if len(tables) > maxTables {
		return fmt.Errorf("%d tables, at most %d are allowed", len(tables), maxTables)
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
