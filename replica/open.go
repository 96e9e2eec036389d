package replica

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/kv"
)

// Founding describes a new group. All its first members must be given the same one.
type Founding struct {
	Group   uint64   // never 0, unique forever
	Members []string // peer ids; their order gives them their replica ids, 1 to n
	// Tables select the owner's state: the rows that snapshots carry and replace. Only ReportApplied writes them (and the
	// caller that fills them before the group is first opened). They are the same on all members. Nil if the group never
	// sends or receives a snapshot: it then has no members but the founders, and none of them may fall far behind.
	Tables []TablePrefix
}

// founding is a group that is created with the next commit.
type founding struct {
	group  uint64
	conf   *configuration
	state  state
	tables []TablePrefix
	writes []kv.Write
	reply  func(*Group, error)
}

type closing struct {
	r     *replica
	reply chan<- error
}

// Open opens a group. If this node never had it, it is founded, durably. Otherwise it resumes from what is stored, and
// the stored configuration takes precedence over the founding's members (which may then be empty). A group of one
// campaigns at once: Leadership{Self: true} is delivered within a few fsyncs. The error is ErrOpen, ErrTombstone,
// ErrNotMember, kv.ErrDamaged, ErrStorage, ErrStopped, the context's, or one of the storage's reads.
func (h *Host) Open(ctx context.Context, f Founding) (*Group, error) {
	return h.awaitOpen(ctx, fmt.Sprintf("open group %d", f.Group), func(reply func(*Group, error)) { h.open(f, reply) })
}

// awaitOpen makes Run call open, and waits for its reply.
func (h *Host) awaitOpen(ctx context.Context, doing string, open func(reply func(*Group, error))) (*Group, error) {
	type result struct {
		group *Group
		err   error
	}
	reply := make(chan result, 1)
	h.post(func() {
		open(func(g *Group, err error) { reply <- result{g, err} })
	})
	select {
	case r := <-reply:
		return r.group, r.err
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
				h.post(abandon) // its founding is in the next commit
			}
		}
		h.post(abandon)
		return nil, fmt.Errorf("%s: %w", doing, ctx.Err())
	}
}

func (h *Host) open(f Founding, reply func(*Group, error)) {
	refuse := func(err error) { reply(nil, fmt.Errorf("open group %d: %w", f.Group, err)) }
	if err := h.checkOpenable(f.Group, f.Tables); err != nil {
		refuse(err)
		return
	}
	s, conf, err := h.load(f.Group)
	switch {
	case err != nil:
		refuse(err)
	case conf != nil:
		h.resume(f.Group, s, conf, f.Tables, func(g *Group, err error) {
			if err != nil {
				refuse(err)
				return
			}
			reply(g, nil)
		})
	case h.stall != nil:
		refuse(h.stall)
	default:
		found, err := h.prepareFounding(f)
		if err != nil {
			refuse(err)
			return
		}
		found.reply = reply
		h.founding = append(h.founding, found)
	}
}

// load reads a group's state and configuration; the latter is nil if this node never had the group.
func (h *Host) load(group uint64) (state, *configuration, error) { return loadState(h.storage, group) }

func loadState(storage Storage, group uint64) (state, *configuration, error) {
	records := make(map[byte][]byte, 2)
	for _, kind := range []byte{kindTombstone, kindState, kindConfig} {
		value, err := storage.Get(tableState, stateKey(group, kind))
		if err != nil {
			return state{}, nil, fmt.Errorf("load state: %w", err)
		}
		if value != nil {
			records[kind] = value
		}
	}
	if records[kindTombstone] != nil {
		return state{}, nil, ErrTombstone
	}
	if len(records) == 0 {
		return state{}, nil, checkNoLog(storage, group)
	}
	s, err := decodeState(records[kindState])
	if err != nil {
		return state{}, nil, fmt.Errorf("load state: %w", err)
	}
	conf, err := decodeConfiguration(records[kindConfig])
	if err != nil {
		return state{}, nil, fmt.Errorf("load state: %w", err)
	}
	return s, conf, nil
}

// prepareFounding prepares the writes that found a group.
func (h *Host) prepareFounding(f Founding) (*founding, error) {
	conf := &configuration{Index: foundingIndex, Next: uint64(len(f.Members)) + 1}
	for i, peer := range f.Members {
		conf.Members = append(conf.Members, member{ID: uint64(i) + 1, Peer: peer})
	}
	if err := conf.check(); err != nil {
		return nil, err
	}
	if conf.id(h.self) == 0 {
		return nil, fmt.Errorf("%w: %q is not among %q", ErrNotMember, h.self, f.Members)
	}
	s := state{term: foundingTerm, commit: foundingIndex, applied: foundingIndex, start: foundingIndex, startTerm: foundingTerm}
	encoded, err := encodeConfiguration(conf)
	if err != nil {
		return nil, err
	}
	return &founding{group: f.Group, conf: conf, state: s, tables: f.Tables, writes: []kv.Write{
		{Table: tableState, Key: stateKey(f.Group, kindState), Value: encodeState(s)},
		{Table: tableState, Key: stateKey(f.Group, kindConfig), Value: encoded},
	}}, nil
}

// resume opens a stored group.
func (h *Host) resume(group uint64, s state, conf *configuration, tables []TablePrefix, reply func(*Group, error)) {
	r, err := newReplica(h, group, s, conf, tables)
	if err != nil {
		reply(nil, err)
		return
	}
	if h.stall == nil {
		if err := h.start(r); err != nil {
			reply(nil, err)
			return
		}
	}
	h.replicas[group] = r
	h.mu.Lock()
	h.mu.open[group] = r.handle
	h.mu.Unlock()
	h.metrics.groups.Set(float64(len(h.replicas)))
	if h.stall != nil {
		r.stop(h.stall)
	}
	h.markDirty(r)
	reply(r.handle, nil)
}

// start creates the replica's raft node and starts its clock.
func (h *Host) start(r *replica) error {
	if err := r.start(); err != nil {
		return err
	}
	h.ticking.start(r)
	return nil
}

// closeGroup removes a group from memory, after its next commit if it has applied writes to store.
func (h *Host) closeGroup(g *Group, reply chan<- error) {
	r := h.replicas[g.id]
	if r == nil || r.handle != g {
		reply <- nil
		return
	}
	h.closing = append(h.closing, closing{r: r, reply: reply})
	if r.hasUnstored() {
		h.flushDue = true
		h.storeLater(r)
	}
}

// hasUnstored reports whether the owner has applied writes that are not stored.
func (r *replica) hasUnstored() bool { return len(r.pending) > 0 || r.reported > r.stored.applied }

// finishClosing removes the closed groups from memory. Their data has been stored by now, unless storage refuses.
func (h *Host) finishClosing() {
	for _, c := range h.closing {
		var err error
		if !c.r.ended && c.r.hasUnstored() {
			err = fmt.Errorf("close group %d: %w", c.r.group, h.stall)
		}
		h.drop(c.r, ErrClosed, nil)
		c.reply <- err
	}
	h.closing = nil
}

// Has reports whether this node stores the group, open or not. A removed group is not stored.
func (h *Host) Has(group uint64) (bool, error) {
	value, err := h.storage.Get(tableState, stateKey(group, kindConfig))
	if err != nil {
		return false, fmt.Errorf("look for group %d: %w", group, err)
	}
	return value != nil, nil
}

// Groups returns the groups that this node stores, open or not, ascending.
func (h *Host) Groups() ([]uint64, error) {
	var groups []uint64
	err := h.storage.Scan(tableState, nil, func(key, _ []byte) error {
		if len(key) == 9 && key[8] == kindConfig {
			groups = append(groups, binary.BigEndian.Uint64(key))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	return groups, nil
}

// Remove deletes everything that this node stores of a group that is not open, together with the writes in also (the
// owner's own tables), in one transaction, and leaves a tombstone: the group cannot be opened here again, only joined
// under a later replica id. It blocks until that is durable. The error is ErrOpen, ErrStopped, or one of the storage's.
func (h *Host) Remove(group uint64, also ...kv.Write) error {
	reply := make(chan error, 1)
	h.post(func() { reply <- h.remove(group, also) })
	select {
	case err := <-reply:
		return err
	case <-h.stopped:
		return fmt.Errorf("remove group %d: %w", group, ErrStopped)
	}
}

func (h *Host) remove(group uint64, also []kv.Write) error {
	if h.replicas[group] != nil ||
		slices.ContainsFunc(h.founding, func(f *founding) bool { return f.group == group }) {
		return fmt.Errorf("remove group %d: %w", group, ErrOpen)
	}
	writes := slices.Clone(also)
	tombstone := stateKey(group, kindTombstone)
	id, had := uint64(0), false
	if value, err := h.storage.Get(tableState, stateKey(group, kindConfig)); err == nil { // a damaged group can be removed, too
		if conf, err := decodeConfiguration(value); err == nil {
			id = conf.own(h.self)
		}
	}
	for _, table := range []string{tableLog, tableState} {
		err := listKeys(h.storage, table, groupPrefix(group), func(key []byte) error {
			if table == tableState && bytes.Equal(key, tombstone) {
				had = true
				return nil
			}
			writes = append(writes, kv.Write{Table: table, Key: bytes.Clone(key)})
			return nil
		})
		if err != nil {
			return fmt.Errorf("remove group %d: %w", group, err)
		}
	}
	if !had {
		writes = append(writes, kv.Write{Table: tableState, Key: tombstone, Value: binary.BigEndian.AppendUint64(nil, id)})
	}
	if err := h.store(writes, 1, 0); err != nil {
		return fmt.Errorf("remove group %d: %w: %w", group, ErrStorage, err)
	}
	return nil
}
