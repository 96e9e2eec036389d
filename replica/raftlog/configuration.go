package raftlog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// Bounds of a configuration.
const (
	MaxMembers    = 15
	MaxPeer       = 256     // bytes of a peer id
	MaxRecoveries = 200     // of one group
	MaxNumber     = 1 << 62 // terms and indexes: adding to them cannot overflow
)

// Member is one replica of a group.
type Member struct {
	ID      uint64 `cbor:"1,keyasint"` // replica id: used once, ever, within its group
	Peer    string `cbor:"2,keyasint"`
	Learner bool   `cbor:"-"` // receives everything, is not counted for majorities, never leads
}

// Configuration lists a group's members. It is immutable.
type Configuration struct {
	// Index of the log entry that made it; FoundingIndex for the founders; 0 in a replica that was joined and has no
	// state yet: its members come from its owner, and are not passed to raft.
	Index    uint64   `cbor:"1,keyasint"`
	Next     uint64   `cbor:"2,keyasint"`           // the lowest replica id that was never given out: ids are used once, ever
	Voters   []Member `cbor:"3,keyasint"`           // by ascending id
	Learners []Member `cbor:"4,keyasint,omitempty"` // by ascending id
	Own      uint64   `cbor:"5,keyasint,omitempty"` // replica id of the node that stores this; 0: the one of its peer
	// Recovered counts the recoveries of the group. Of two groups with the same number, the one with the higher count
	// is authoritative.
	Recovered uint64 `cbor:"6,keyasint,omitempty"`
}

func compareIDs(a, b Member) int { return cmp.Compare(a.ID, b.ID) }

// All returns voters and learners by ascending replica id.
func (c *Configuration) All() []Member {
	members := slices.Concat(c.Voters, c.Learners)
	slices.SortFunc(members, compareIDs)
	return members
}

// ID returns the replica id of peer, 0 if it is not a member.
func (c *Configuration) ID(peer string) uint64 {
	for _, m := range c.All() {
		if m.Peer == peer {
			return m.ID
		}
	}
	return 0
}

// Peer returns the peer whose replica id is id, "" if there is none.
func (c *Configuration) Peer(id uint64) string {
	for _, m := range c.All() {
		if m.ID == id {
			return m.Peer
		}
	}
	return ""
}

// IsVoter reports whether the replica has a vote.
func (c *Configuration) IsVoter(id uint64) bool {
	return slices.ContainsFunc(c.Voters, func(m Member) bool { return m.ID == id })
}

// OwnID returns the replica id of the node that stores this configuration, even if it is no longer a member.
func (c *Configuration) OwnID(self string) uint64 {
	if c.Own != 0 {
		return c.Own
	}
	return c.ID(self)
}

// ConfState returns the configuration as raft's type.
func (c *Configuration) ConfState() *raftpb.ConfState {
	cs := raftpb.EnsureConfState(nil)
	if c.Index == 0 {
		return cs
	}
	for _, m := range c.Voters {
		cs.Voters = append(cs.Voters, m.ID)
	}
	for _, m := range c.Learners {
		cs.Learners = append(cs.Learners, m.ID)
	}
	return cs
}

// Check validates a configuration, founded or stored.
func (c *Configuration) Check() error {
	n := len(c.Voters) + len(c.Learners)
	if n > MaxMembers || len(c.Voters) < 1 && (c.Index > 0 || n < 1) {
		return fmt.Errorf("group of %d members, %d with a vote: 1 to %d are allowed", n, len(c.Voters), MaxMembers)
	}
	if c.Recovered > MaxRecoveries {
		return fmt.Errorf("configuration of a group that was recovered %d times", c.Recovered)
	}
	if c.Index > MaxNumber || c.Next > MaxNumber || c.Own > c.Next {
		return fmt.Errorf("configuration %d, replica %d, next replica %d", c.Index, c.Own, c.Next)
	}
	peers, ids := make(map[string]bool, n), make(map[uint64]bool, n)
	for _, list := range [...][]Member{c.Voters, c.Learners} {
		last := uint64(0)
		for _, m := range list {
			if m.Peer == "" || len(m.Peer) > MaxPeer || peers[m.Peer] {
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

// encodeConfiguration returns the configuration as it is stored.
func encodeConfiguration(c *Configuration) []byte {
	value, err := cbor.Marshal(c)
	if err != nil {
		panic(err) // integers and strings can be encoded
	}
	return value
}

// DecodeConfiguration decodes and checks a stored configuration.
func DecodeConfiguration(value []byte) (*Configuration, error) {
	c := new(Configuration)
	err := cbor.Unmarshal(value, c)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: configuration: %w", kv.ErrDamaged, err)
	}
	for i := range c.Learners {
		c.Learners[i].Learner = true
	}
	return c, nil
}

// Change is the step from one configuration to the next. Each affects one replica, so that the majorities before and
// after it always overlap (raft dissertation, §4.1).
type Change struct {
	Kind raftpb.ConfChangeType // add a learner, add (promote) a voter, remove
	ID   uint64
	Peer string // of a new learner, otherwise ""
}

// Raft returns the change as raft's type.
func (c Change) Raft() *raftpb.ConfChange {
	cc := &raftpb.ConfChange{Type: c.Kind.Enum(), NodeId: &c.ID}
	if c.Peer != "" {
		cc.Context = []byte(c.Peer)
	}
	return cc
}

// Entry returns the log entry that proposes the change.
func (c Change) Entry() (*raftpb.Entry, error) {
	data, err := proto.Marshal(c.Raft())
	if err != nil {
		return nil, fmt.Errorf("encode configuration change: %w", err)
	}
	return &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Data: data}, nil
}

// DecodeChange decodes the data of a log entry of type EntryConfChange.
func DecodeChange(data []byte) (Change, error) {
	var cc raftpb.ConfChange
	if len(data) > 2*MaxPeer {
		return Change{}, fmt.Errorf("configuration change of %d bytes", len(data))
	}
	if err := proto.Unmarshal(data, &cc); err != nil {
		return Change{}, fmt.Errorf("configuration change: %w", err)
	}
	c := Change{Kind: cc.GetType(), ID: cc.GetNodeId(), Peer: string(cc.GetContext())}
	switch {
	case len(cc.ProtoReflect().GetUnknown()) > 0 || cc.Id != nil || c.ID == 0 || c.ID > MaxNumber || len(c.Peer) > MaxPeer:
	case c.Kind == raftpb.ConfChangeAddLearnerNode && c.Peer != "":
		return c, nil
	case (c.Kind == raftpb.ConfChangeAddNode || c.Kind == raftpb.ConfChangeRemoveNode) && c.Peer == "":
		return c, nil
	}
	return Change{}, fmt.Errorf("configuration change %v of replica %d, peer %.20q", c.Kind, c.ID, c.Peer)
}

// Apply returns the configuration after the change at the given index of the log. All members alike refuse a change
// that does not fit; the configuration then stays the same.
func (c *Configuration) Apply(index uint64, ch Change) (*Configuration, error) {
	next := &Configuration{
		Index: index, Next: c.Next, Own: c.Own, Recovered: c.Recovered,
		Voters: slices.Clone(c.Voters), Learners: slices.Clone(c.Learners),
	}
	find := func(list []Member) int {
		return slices.IndexFunc(list, func(m Member) bool { return m.ID == ch.ID })
	}
	voter, learner := find(c.Voters), find(c.Learners)
	switch {
	case ch.Kind == raftpb.ConfChangeAddLearnerNode:
		if ch.ID < c.Next {
			return nil, fmt.Errorf("replica id %d was used before", ch.ID)
		}
		next.Learners = append(next.Learners, Member{ID: ch.ID, Peer: ch.Peer, Learner: true})
		slices.SortFunc(next.Learners, compareIDs)
		next.Next = max(next.Next, ch.ID+1)
	case ch.Kind == raftpb.ConfChangeAddNode && learner >= 0:
		next.Voters = append(next.Voters, Member{ID: ch.ID, Peer: next.Learners[learner].Peer})
		next.Learners = slices.Delete(next.Learners, learner, learner+1)
		slices.SortFunc(next.Voters, compareIDs)
	case ch.Kind == raftpb.ConfChangeRemoveNode && voter >= 0:
		next.Voters = slices.Delete(next.Voters, voter, voter+1)
	case ch.Kind == raftpb.ConfChangeRemoveNode && learner >= 0:
		next.Learners = slices.Delete(next.Learners, learner, learner+1)
	default:
		return nil, fmt.Errorf("%v does not fit replica %d", ch.Kind, ch.ID)
	}
	if len(next.Learners) == 0 {
		next.Learners = nil
	}
	return next, next.Check()
}
