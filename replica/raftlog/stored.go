package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// Errors of reading and making a stored group.
var (
	ErrTombstone = errors.New("group was removed from this node")
	ErrNotMember = errors.New("not a member of the group")
	ErrNotOpen   = errors.New("group is not open here")
)

// Bounds of the tables that an owner may have.
const (
	MaxTables    = 16
	MaxTableName = 64 // bytes, of prefixes too
)

// TablePrefix selects rows of an owner's state: those of a table whose keys begin with the prefix; all rows if the
// prefix is empty.
type TablePrefix struct {
	Table  string
	Prefix []byte
	// Pieces says that the rows of a snapshot may be newer than its index, because the owner's entries change nothing
	// when they are applied to a newer row. So a large snapshot is read in several transactions, and a replica that has
	// nothing yet stores it in pieces.
	Pieces bool
}

// InPieces reports whether snapshots of the tables are sent and stored in pieces.
func InPieces(tables []TablePrefix) bool {
	return len(tables) > 0 && !slices.ContainsFunc(tables, func(t TablePrefix) bool { return !t.Pieces })
}

// CheckTables returns an error if an owner cannot have these tables.
func CheckTables(tables []TablePrefix) error {
	if len(tables) > MaxTables {
		return fmt.Errorf("%d tables, at most %d are allowed", len(tables), MaxTables)
	}
	for _, t := range tables {
		if t.Table == "" || t.Table == TableLog || t.Table == TableState {
			return fmt.Errorf("table %q cannot be an owner's", t.Table)
		}
		if len(t.Table) > MaxTableName || len(t.Prefix) > MaxTableName {
			return fmt.Errorf("table %.20q: name or prefix is longer than %d bytes", t.Table, MaxTableName)
		}
	}
	return nil
}

// LoadState reads a group's state and configuration; the latter is nil if this node never had the group.
func LoadState(storage Reader, group uint64) (State, *Configuration, error) {
	records := make(map[byte][]byte, 2)
	for _, kind := range []byte{KindTombstone, KindState, KindConfig} {
		value, err := storage.Get(TableState, StateKey(group, kind))
		if err != nil {
			return State{}, nil, fmt.Errorf("load state: %w", err)
		}
		if value != nil {
			records[kind] = value
		}
	}
	if records[KindTombstone] != nil {
		return State{}, nil, ErrTombstone
	}
	if len(records) == 0 {
		return State{}, nil, checkNoLog(storage, group)
	}
	s, err := DecodeState(records[KindState])
	if err != nil {
		return State{}, nil, fmt.Errorf("load state: %w", err)
	}
	conf, err := DecodeConfiguration(records[KindConfig])
	if err != nil {
		return State{}, nil, fmt.Errorf("load state: %w", err)
	}
	return s, conf, nil
}

// checkNoLog returns an error if a group without a state has a log. Such a group must not be founded again, because its
// vote was lost.
func checkNoLog(storage Reader, group uint64) error {
	err := storage.Scan(TableLog, GroupPrefix(group), func([]byte, []byte) error {
		return fmt.Errorf("%w: a log without a state", kv.ErrDamaged)
	})
	if err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	return nil
}

// StateWrite returns the write of a group's state.
func StateWrite(group uint64, s State) kv.Write {
	return kv.Write{Table: TableState, Key: StateKey(group, KindState), Value: encodeState(s)}
}

// ConfigurationWrite returns the write of a group's configuration.
func ConfigurationWrite(group uint64, c *Configuration) kv.Write {
	return kv.Write{Table: TableState, Key: StateKey(group, KindConfig), Value: encodeConfiguration(c)}
}

// ConflictWrite returns the write that stores whether a leader's log conflicts with a committed entry of a group.
func ConflictWrite(group uint64, conflict bool) kv.Write {
	w := kv.Write{Table: TableState, Key: StateKey(group, KindConflict)}
	if conflict {
		w.Value = []byte{1}
	}
	return w
}

// Conflict returns what ConflictWrite has stored.
func Conflict(storage Reader, group uint64) (bool, error) {
	value, err := storage.Get(TableState, StateKey(group, KindConflict))
	if err != nil {
		return false, fmt.Errorf("load state: %w", err)
	}
	return value != nil, nil
}

// Found returns the state and the configuration of a group that self founds with the peers.
func Found(self string, peers []string) (State, *Configuration, error) {
	conf := &Configuration{Index: FoundingIndex, Next: uint64(len(peers)) + 1}
	for i, peer := range peers {
		conf.Voters = append(conf.Voters, Member{ID: uint64(i) + 1, Peer: peer})
	}
	if err := conf.Check(); err != nil {
		return State{}, nil, err
	}
	if conf.ID(self) == 0 {
		return State{}, nil, fmt.Errorf("%w: %q is not among %q", ErrNotMember, self, peers)
	}
	s := State{Term: FoundingTerm, Commit: FoundingIndex, Applied: FoundingIndex, Start: FoundingIndex, StartTerm: FoundingTerm}
	return s, conf, nil
}

// Fork is the beginning of a group whose rows come from an entry in another group's log: all members of that group at
// the entry, under the same replica ids, continue at its index and term.
type Fork struct {
	Group       uint64
	Index, Term uint64
	Members     []Member
	Recovered   uint64 // how often the other group was recovered
}

// ErrStored is returned by Begin if the group was begun here before.
var ErrStored = errors.New("group is stored here")

// Begin returns the writes that make self a member of a forked group. It fails with ErrStored if anything is stored of
// the group, and with ErrTombstone if it was removed: then it began here before, and its state must not return to the
// beginning.
func (f Fork) Begin(storage Reader, self string) ([]kv.Write, error) {
	_, stored, err := LoadState(storage, f.Group)
	switch {
	case err != nil:
		return nil, err
	case stored != nil:
		return nil, ErrStored
	}
	conf := &Configuration{Index: f.Index, Recovered: f.Recovered}
	for _, m := range f.Members {
		list := &conf.Voters
		if m.Learner {
			list = &conf.Learners
		}
		*list = append(*list, m)
		conf.Next = max(conf.Next, m.ID+1)
	}
	if err := conf.Check(); err != nil {
		return nil, err
	}
	if conf.ID(self) == 0 {
		return nil, fmt.Errorf("%w: %q is not among %v", ErrNotMember, self, f.Members)
	}
	s := State{Term: f.Term, Commit: f.Index, Applied: f.Index, Start: f.Index, StartTerm: f.Term}
	return []kv.Write{StateWrite(f.Group, s), ConfigurationWrite(f.Group, conf)}, nil
}

// Join returns the configuration of a replica without state that self joins as, and the writes that store it. It fails
// with ErrTombstone if self was removed under this id or a later one.
func Join(storage Reader, self string, group, id uint64, members []Member) (*Configuration, []kv.Write, error) {
	tombstone := StateKey(group, KindTombstone)
	value, err := storage.Get(TableState, tombstone)
	if err != nil {
		return nil, nil, err
	}
	if len(value) == 8 && binary.BigEndian.Uint64(value) >= id {
		return nil, nil, fmt.Errorf("%w, as replica %d", ErrTombstone, binary.BigEndian.Uint64(value))
	}
	conf := &Configuration{Own: id}
	for _, m := range members {
		list := &conf.Voters
		if m.Learner {
			list = &conf.Learners
		}
		*list = append(*list, m)
		conf.Next = max(conf.Next, m.ID+1)
	}
	slices.SortFunc(conf.Voters, compareIDs)
	slices.SortFunc(conf.Learners, compareIDs)
	if err := conf.Check(); err != nil {
		return nil, nil, err
	}
	if id == 0 || conf.ID(self) != id {
		return nil, nil, fmt.Errorf("%w: %q is not replica %d among %v", ErrNotMember, self, id, members)
	}
	return conf, []kv.Write{
		{Table: TableState, Key: tombstone},
		StateWrite(group, State{}), ConfigurationWrite(group, conf),
	}, nil
}

// Recovery is a stored group before and after a node has become its only member.
type Recovery struct {
	Before, After *Configuration
	State         State  // after
	Last          uint64 // the last index of the log
}

// Recover returns a stored group's recovery by self, under a new replica id, and the writes that store it.
func Recover(storage Reader, self string, group uint64) (Recovery, []kv.Write, error) {
	s, before, err := LoadState(storage, group)
	if err != nil {
		return Recovery{}, nil, err
	}
	if before == nil || before.Index == 0 {
		return Recovery{}, nil, fmt.Errorf("%w: it has no state", ErrNotOpen)
	}
	// Changes in the log will be committed, but must not take effect: their ids must be below the new one.
	l, err := LoadLog(storage, group, s, before)
	if err != nil {
		return Recovery{}, nil, err
	}
	id := before.Next
	for _, c := range l.Changes {
		id = max(id, c.ID+1)
	}
	after := recovered(before.Index, self, id, before.Recovered)
	s.Term, s.Vote = s.Term+1, 0 // the vote was of another replica
	writes := []kv.Write{StateWrite(group, s), ConfigurationWrite(group, after), ConflictWrite(group, false)}
	return Recovery{Before: before, After: after, State: s, Last: l.Last}, writes, after.Check()
}

// recovered returns the configuration of a group of which self is the only member after another recovery.
func recovered(index uint64, self string, id, before uint64) *Configuration {
	return &Configuration{Index: index, Next: id + 1, Own: id, Voters: []Member{{ID: id, Peer: self}}, Recovered: before + 1}
}

// Origin is the position in a group's log from which a group continues whose rows come from elsewhere, such as from a
// backup.
type Origin struct {
	Index     uint64 // the rows contain the entries up to this one
	Term      uint64
	Next      uint64 // the lowest replica id that was not given out
	Recovered uint64 // how often the group was recovered
}

// restoreGap is added to the index and the replica id of an origin. The group may have gone on after it, for no longer
// than this: what it has used since then is never used again. So region ids, which derive from the catalog's indexes,
// stay unique, and nodes that were removed since do not refuse their new replica ids.
const restoreGap = 1 << 24

// restoreSpread bounds the random part of the gap between the indexes. A group that is restored twice from the same
// rows goes on at different indexes, so that an index still identifies the state of a group that was recovered so
// often: incremental backups rely on it.
const restoreSpread = 1 << 28

// Restore returns the configuration and the writes that make self the only member of a group that continues from the
// origin, in the place of everything that is stored of it. The rows of the owner's tables are the caller's matter.
func Restore(storage Reader, self string, group uint64, from Origin) (*Configuration, []kv.Write, error) {
	writes, _, err := deletions(storage, group)
	if err != nil {
		return nil, nil, err
	}
	index, id := max(from.Index, FoundingIndex)+restoreGap+rand.Uint64N(restoreSpread), from.Next+restoreGap
	conf := recovered(index, self, id, from.Recovered)
	if err := conf.Check(); err != nil {
		return nil, nil, err
	}
	term := max(from.Term, FoundingTerm)
	s := State{Term: term + 1, Commit: index, Applied: index, Start: index, StartTerm: term}
	return conf, append(writes, kv.Write{Table: TableState, Key: StateKey(group, KindTombstone)}, StateWrite(group, s), ConfigurationWrite(group, conf)), nil
}

// Remove returns the writes that delete everything stored of a group except a tombstone, and leave a tombstone for
// self's replica id unless there is one. A damaged group can be removed, too.
func Remove(storage Reader, self string, group uint64) ([]kv.Write, error) {
	writes, had, err := deletions(storage, group)
	if err != nil || had {
		return writes, err
	}
	id := uint64(0)
	if value, err := storage.Get(TableState, StateKey(group, KindConfig)); err == nil {
		if conf, err := DecodeConfiguration(value); err == nil {
			id = conf.OwnID(self)
		}
	}
	return append(writes, tombstoneWrite(group, id)), nil
}

// Discard returns the writes that delete everything stored of a group, without reading a value, and leave a tombstone
// for the replica id.
func Discard(storage Reader, group, id uint64) ([]kv.Write, error) {
	if id == 0 {
		return nil, errors.New("replica id 0 is invalid")
	}
	writes, _, err := deletions(storage, group)
	return append(writes, tombstoneWrite(group, id)), err
}

func tombstoneWrite(group, id uint64) kv.Write {
	return kv.Write{Table: TableState, Key: StateKey(group, KindTombstone), Value: binary.BigEndian.AppendUint64(nil, id)}
}

// deletions returns the writes that delete the records of a group except its tombstone, and whether it has one.
func deletions(storage Reader, group uint64) (writes []kv.Write, tombstone bool, err error) {
	for _, table := range []string{TableLog, TableState} {
		err := listKeys(storage, table, GroupPrefix(group), func(key []byte) error {
			if table == TableState && bytes.Equal(key, StateKey(group, KindTombstone)) {
				tombstone = true
				return nil
			}
			writes = append(writes, kv.Write{Table: table, Key: bytes.Clone(key)})
			return nil
		})
		if err != nil {
			return nil, false, err
		}
	}
	return writes, tombstone, nil
}

// Has reports whether the group is stored. A removed group is not.
func Has(storage Reader, group uint64) (bool, error) {
	value, err := storage.Get(TableState, StateKey(group, KindConfig))
	if err != nil {
		return false, fmt.Errorf("look for group %d: %w", group, err)
	}
	return value != nil, nil
}

// Groups returns the stored groups, ascending.
func Groups(storage Reader) ([]uint64, error) {
	var groups []uint64
	err := storage.Scan(TableState, nil, func(key, _ []byte) error {
		if len(key) == 9 && key[8] == KindConfig {
			groups = append(groups, binary.BigEndian.Uint64(key))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	return groups, nil
}

// OriginIn reads the position of a group, and its configuration, from a snapshot of the storage. The owner's tables,
// read through the same snapshot, contain exactly the entries up to it.
func OriginIn(r Reader, group uint64) (Origin, *Configuration, error) {
	s, conf, err := LoadState(r, group)
	switch {
	case err != nil:
		return Origin{}, nil, fmt.Errorf("read position of group %d: %w", group, err)
	case conf == nil || conf.Index == 0:
		return Origin{}, nil, fmt.Errorf("read position of group %d: %w", group, ErrNotOpen)
	}
	return Origin{Index: s.Applied, Term: s.Term, Next: conf.Next, Recovered: conf.Recovered}, conf, nil
}

// AppliedIn reads a group's applied index from a snapshot of the storage; get comes from Storage.View. The owner's
// tables, read through the same view, contain exactly the entries up to it.
func AppliedIn(get func(table string, key []byte) ([]byte, error), group uint64) (uint64, error) {
	value, err := get(TableState, StateKey(group, KindState))
	if err != nil {
		return 0, fmt.Errorf("read applied index of group %d: %w", group, err)
	}
	s, err := DecodeState(value)
	if err != nil {
		return 0, fmt.Errorf("read applied index of group %d: %w", group, err)
	}
	return s.Applied, nil
}
