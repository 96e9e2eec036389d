package replica

import (
	"encoding/binary"
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/kv"
)

// The tables of package doc, "Storage layout".
const (
	tableLog   = "raft_log"
	tableState = "raft_state"
)

// Kinds of records in raft_state, the last byte of the key.
const (
	kindState     = 's'
	kindConfig    = 'c'
	kindTombstone = 'x'
	kindProbe     = 'p' // of group 0, which does not exist
)

// The state in which a group is founded; the first entry follows.
const (
	foundingIndex = 1
	foundingTerm  = 1
)

func logKey(group, index uint64) []byte {
	key := make([]byte, 16)
	binary.BigEndian.PutUint64(key, group)
	binary.BigEndian.PutUint64(key[8:], index)
	return key
}

func stateKey(group uint64, kind byte) []byte {
	key := make([]byte, 9)
	binary.BigEndian.PutUint64(key, group)
	key[8] = kind
	return key
}

func groupPrefix(group uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, group)
}

func encodeEntry(entry *raftpb.Entry) []byte {
	value := make([]byte, 0, entryHead+len(entry.GetData()))
	value = append(value, byte(entry.GetType()))
	value = binary.BigEndian.AppendUint64(value, entry.GetTerm())
	return append(value, entry.GetData()...)
}

// entryHead is the number of bytes before an entry's data: kind and term.
const entryHead = 1 + 8

// decodeEntry copies the data that it returns.
func decodeEntry(key, value []byte) (*raftpb.Entry, error) {
	index, term, kind, err := decodeEntryHead(key, value)
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

func decodeEntryHead(key, value []byte) (index, term uint64, kind raftpb.EntryType, err error) {
	if len(key) != 16 || len(value) < entryHead || value[0] > byte(raftpb.EntryConfChangeV2) {
		return 0, 0, 0, fmt.Errorf("%w: log record of %d bytes at key %x", kv.ErrDamaged, len(value), key)
	}
	return binary.BigEndian.Uint64(key[8:]), binary.BigEndian.Uint64(value[1:]), raftpb.EntryType(value[0]), nil
}

// state is the record 's' of a group. Invariant: start ≤ applied ≤ commit ≤ last index of the log.
type state struct {
	term, vote, commit uint64 // raft's hard state
	applied            uint64 // the owner's tables contain the entries up to this index
	start, startTerm   uint64 // index and term of the entry before the log's first
}

func encodeState(s state) []byte {
	value := make([]byte, 0, stateSize)
	value = append(value, 1)
	for _, v := range [...]uint64{s.term, s.vote, s.commit, s.applied, s.start, s.startTerm} {
		value = binary.BigEndian.AppendUint64(value, v)
	}
	return value
}

const stateSize = 1 + 6*8

func decodeState(value []byte) (state, error) {
	if len(value) != stateSize || value[0] != 1 {
		return state{}, fmt.Errorf("%w: state %x", kv.ErrDamaged, value[:min(stateSize, len(value))])
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(value[1+8*i:]) }
	s := state{term: at(0), vote: at(1), commit: at(2), applied: at(3), start: at(4), startTerm: at(5)}
	if s.start > s.applied || s.applied > s.commit || s.commit > maxNumber || s.startTerm > s.term || s.term > maxNumber {
		return state{}, fmt.Errorf("%w: state %+v", kv.ErrDamaged, s)
	}
	return s, nil
}

// configuration lists a group's members. It is immutable.
type configuration struct {
	// Index of the log entry that made it; foundingIndex for the founders; 0 in a replica that was joined and has no
	// state yet: its members come from its owner, and are not passed to raft.
	Index    uint64   `cbor:"1,keyasint"`
	Next     uint64   `cbor:"2,keyasint"`           // the lowest replica id that was never given out: ids are used once, ever
	Members  []member `cbor:"3,keyasint"`           // voters, by ascending id
	Learners []member `cbor:"4,keyasint,omitempty"` // by ascending id
	Own      uint64   `cbor:"5,keyasint,omitempty"` // replica id of the node that stores this; 0: the one of its peer
	// Recovered counts the recoveries of the group. Of two groups with the same number, the one with the higher count is
	// authoritative.
	Recovered uint64 `cbor:"6,keyasint,omitempty"`
}

type member struct {
	ID   uint64 `cbor:"1,keyasint"` // raft's id of this replica
	Peer string `cbor:"2,keyasint"`
}

// id returns the replica id of peer, 0 if it is not a member.
func (c *configuration) id(peer string) uint64 {
	for _, list := range [...][]member{c.Members, c.Learners} {
		for _, m := range list {
			if m.Peer == peer {
				return m.ID
			}
		}
	}
	return 0
}

// peer returns the peer whose replica id is id, "" if there is none.
func (c *configuration) peer(id uint64) string {
	for _, list := range [...][]member{c.Members, c.Learners} {
		for _, m := range list {
			if m.ID == id {
				return m.Peer
			}
		}
	}
	return ""
}

func (c *configuration) confState() *raftpb.ConfState {
	cs := raftpb.EnsureConfState(nil)
	if c.Index == 0 {
		return cs
	}
	for _, m := range c.Members {
		cs.Voters = append(cs.Voters, m.ID)
	}
	for _, m := range c.Learners {
		cs.Learners = append(cs.Learners, m.ID)
	}
	return cs
}

// check validates a configuration, founded or stored.
func (c *configuration) check() error {
	n := len(c.Members) + len(c.Learners)
	if n > maxMembers || len(c.Members) < 1 && (c.Index > 0 || n < 1) {
		return fmt.Errorf("group of %d members, %d with a vote: 1 to %d are allowed", n, len(c.Members), maxMembers)
	}
	if c.Recovered > MaxRecoveries {
		return fmt.Errorf("configuration of a group that was recovered %d times", c.Recovered)
	}
	if c.Index > maxNumber || c.Next > maxNumber || c.Own > c.Next {
		return fmt.Errorf("configuration %d, replica %d, next replica %d", c.Index, c.Own, c.Next)
	}
	peers, ids := make(map[string]bool, n), make(map[uint64]bool, n)
	for _, list := range [...][]member{c.Members, c.Learners} {
		last := uint64(0)
		for _, m := range list {
			if m.Peer == "" || len(m.Peer) > maxPeer || peers[m.Peer] {
				return fmt.Errorf("member %.20q is empty, too long or named twice", m.Peer)
			}
			if m.ID <= last || m.ID >= c.Next || ids[m.ID] {
				return fmt.Errorf("replica id %d is out of order", m.ID)
			}
			peers[m.Peer], ids[m.ID], last = true, true, m.ID
		}
	}
	return nil
}

func encodeConfiguration(c *configuration) ([]byte, error) {
	value, err := cbor.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return value, nil
}

func decodeConfiguration(value []byte) (*configuration, error) {
	var c configuration
	if err := cbor.Unmarshal(value, &c); err != nil {
		return nil, fmt.Errorf("%w: configuration: %w", kv.ErrDamaged, err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: configuration: %w", kv.ErrDamaged, err)
	}
	return &c, nil
}
