package raftlog

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// The tables; see "Storage layout" in the package documentation.
const (
	TableLog   = "raft_log"
	TableState = "raft_state"
)

// Kinds of records in raft_state, the last byte of the key.
const (
	KindState     = 's'
	KindConfig    = 'c'
	KindTombstone = 'x'
	KindConflict  = 'k' // there is one if a leader's log conflicts with a committed entry
	KindProbe     = 'p' // of group 0, which does not exist
)

// The state in which a group is founded; the first entry follows.
const (
	FoundingIndex = 1
	FoundingTerm  = 1
)

// LogKey returns the key of a log entry.
func LogKey(group, index uint64) []byte {
	key := make([]byte, 16)
	binary.BigEndian.PutUint64(key, group)
	binary.BigEndian.PutUint64(key[8:], index)
	return key
}

// StateKey returns the key of a record in TableState.
func StateKey(group uint64, kind byte) []byte {
	key := make([]byte, 9)
	binary.BigEndian.PutUint64(key, group)
	key[8] = kind
	return key
}

// GroupPrefix returns the prefix of all keys of a group.
func GroupPrefix(group uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, group)
}

// encodeEntry returns an entry as it is stored.
func encodeEntry(entry *raftpb.Entry) []byte {
	value := make([]byte, 0, entryHead+len(entry.GetData()))
	value = append(value, byte(entry.GetType()))
	value = binary.BigEndian.AppendUint64(value, entry.GetTerm())
	return append(value, entry.GetData()...)
}

// EntryOverhead is roughly what an entry costs in memory beside its bytes.
const EntryOverhead = 64

// entryHead is the number of bytes before an entry's data: kind and term.
const entryHead = 1 + 8

// decodeEntry decodes a stored entry. It copies the data.
func decodeEntry(key, value []byte) (*raftpb.Entry, error) {
	index, term, kind, err := DecodeEntryHead(key, value)
	if err != nil {
		return nil, err
	}
	entry := &raftpb.Entry{Index: &index, Term: &term}
	if kind != raftpb.EntryNormal {
		entry.Type = &kind // raft otherwise omits it, and counts the bytes
	}
	if data := value[entryHead:]; len(data) > 0 {
		entry.Data = append([]byte(nil), data...)
	}
	return entry, nil
}

// DecodeEntryHead decodes a stored entry without its data.
func DecodeEntryHead(key, value []byte) (index, term uint64, kind raftpb.EntryType, err error) {
	if len(key) != 16 || len(value) < entryHead || value[0] > byte(raftpb.EntryConfChangeV2) {
		return 0, 0, 0, fmt.Errorf("%w: log record of %d bytes at key %x", kv.ErrDamaged, len(value), key)
	}
	return binary.BigEndian.Uint64(key[8:]), binary.BigEndian.Uint64(value[1:]), raftpb.EntryType(value[0]), nil
}

// State is the record 's' of a group. Invariant: start ≤ applied ≤ commit ≤ last index of the log.
type State struct {
	Term, Vote, Commit uint64 // raft's hard state
	Applied            uint64 // the owner's tables contain the entries up to this index
	Start, StartTerm   uint64 // index and term of the entry before the log's first
}

// encodeState returns a state as it is stored.
func encodeState(s State) []byte {
	value := make([]byte, 0, stateSize)
	value = append(value, 1)
	for _, v := range [...]uint64{s.Term, s.Vote, s.Commit, s.Applied, s.Start, s.StartTerm} {
		value = binary.BigEndian.AppendUint64(value, v)
	}
	return value
}

const stateSize = 1 + 6*8

// DecodeState decodes and checks a stored state.
func DecodeState(value []byte) (State, error) {
	if len(value) != stateSize || value[0] != 1 {
		return State{}, fmt.Errorf("%w: state %x", kv.ErrDamaged, value[:min(stateSize, len(value))])
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(value[1+8*i:]) }
	s := State{Term: at(0), Vote: at(1), Commit: at(2), Applied: at(3), Start: at(4), StartTerm: at(5)}
	if s.Start > s.Applied || s.Applied > s.Commit || s.Commit > MaxNumber || s.StartTerm > s.Term || s.Term > MaxNumber {
		return State{}, fmt.Errorf("%w: state %+v", kv.ErrDamaged, s)
	}
	return s, nil
}
