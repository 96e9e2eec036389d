package replica

import (
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/kv"
)

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
// The other members must never run again with their stored data. If they are not lost after all, they form another group
// of the same number, which continues on its own. They must be removed (Host.Remove) before they join again.
func (h *Host) Recover(group uint64) error {
	reply := make(chan error, 1)
	h.post(func() { reply <- h.recover(group) })
	select {
	case err := <-reply:
		if err != nil {
			return fmt.Errorf("recover group %d: %w", group, err)
		}
		return nil
	case <-h.stopped:
		return fmt.Errorf("recover group %d: %w", group, ErrStopped)
	}
}

// MaxRecoveries bounds how often a group can be recovered.
const MaxRecoveries = 200

func (h *Host) recover(group uint64) error {
	if h.replicas[group] != nil ||
		slices.ContainsFunc(h.founding, func(f *founding) bool { return f.group == group }) {
		return ErrOpen
	}
	s, conf, err := h.load(group)
	if err != nil {
		return err
	}
	if conf == nil || conf.Index == 0 {
		return fmt.Errorf("%w: it has no state", ErrNotOpen)
	}
	// Changes in the log will be committed, but must not take effect: their ids must be below the new one.
	l, err := loadLog(h.storage, group, s, conf)
	if err != nil {
		return err
	}
	id := conf.Next
	for _, c := range l.changes {
		id = max(id, c.id+1)
	}
	next := &configuration{
		Index: conf.Index, Next: id + 1, Own: id, Members: []member{{ID: id, Peer: h.self}}, Recovered: conf.Recovered + 1,
	}
	if err := next.check(); err != nil {
		return err
	}
	encoded, err := encodeConfiguration(next)
	if err != nil {
		return err
	}
	s.term, s.vote = s.term+1, 0 // the vote was of another replica
	if err := h.store([]kv.Write{
		{Table: tableState, Key: stateKey(group, kindState), Value: encodeState(s)},
		{Table: tableState, Key: stateKey(group, kindConfig), Value: encoded},
	}, 1, 0); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	h.logger.Warn("group recovered on this node alone", "group", group, "replica", id,
		"members_before", conf.all(), "commit", s.commit, "last", l.last)
	return nil
}
