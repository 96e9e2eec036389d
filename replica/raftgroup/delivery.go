package raftgroup

import (
	"errors"

	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// Errors of Group.Propose and of other calls.
var (
	ErrNotLeader  = errors.New("this node does not lead the group")
	ErrOverloaded = errors.New("group is overloaded")
	ErrTooLarge   = errors.New("entry is too large")
	ErrStorage    = errors.New("storage refuses writes")
	ErrClosed     = errors.New("group is closed")
	ErrOpen       = errors.New("group is open")
	ErrStopped    = errors.New("replication host has stopped")
)

// Reasons why a configuration change or a transfer is not started.
var (
	ErrBusy     = errors.New("another configuration change is under way")
	ErrMember   = errors.New("already a member of the group")
	ErrBehind   = errors.New("not reachable, or too far behind")
	ErrLeads    = errors.New("the leader cannot remove itself: transfer leadership first")
	ErrMajority = errors.New("the group would be left without a live majority")
)

// ErrReplaced marks that the group gave this node a later replica id than the stored one: the node was removed and
// added again without noticing. The owner removes the old replica (Host.Remove) and joins with the new id.
var ErrReplaced = errors.New("this node's replica was replaced")

// Delivery is an event for a group's owner: Committed, Leadership, Configured, Restored, Removed or Failed.
type Delivery interface{ delivery() }

// Committed is an entry that is safe: it will never be lost or reordered. The owner must not modify Entry's bytes.
type Committed struct {
	Index uint64 // position in the log; grows from one Committed to the next, not always by one
	Term  uint64 // raft term in which the entry was proposed
	Entry []byte
}

// Leadership reports a change of the group's leader.
type Leadership struct {
	Leader string // peer id; "" while unknown
	Self   bool   // this node leads: Propose takes entries
	Term   uint64
	Cause  error // not nil if this node resigned only because its storage refuses writes (ErrStorage and the reason)
}

// Configured reports the group's members from the entry of this index on.
type Configured struct {
	Index   uint64
	Members []raftlog.Member // by ascending replica id
	// Recovered is how often the group was recovered from a single survivor (Host.Recover).
	Recovered uint64
}

// Removed reports that this node is no longer a member: no delivery follows. The owner closes the group and calls
// Host.Remove, which leaves the tombstone.
type Removed struct{}

// Restored reports that a snapshot replaced the entries up to Index. The owner's tables in storage are now what they
// were on another member when it had applied that entry. The owner discards its state, and everything not yet passed to
// ReportApplied, loads its tables and continues from there. A Configured follows.
type Restored struct{ Index uint64 }

// Failed is the last delivery: the group has stopped on this node and acknowledges nothing more. It may be opened
// again, which starts from what is stored.
type Failed struct{ Err error }

func (Committed) delivery()  {}
func (Leadership) delivery() {}
func (Configured) delivery() {}
func (Restored) delivery()   {}
func (Removed) delivery()    {}
func (Failed) delivery()     {}

// NewConfigured returns the delivery that reports a configuration.
func NewConfigured(c *raftlog.Configuration) Configured {
	return Configured{Index: c.Index, Members: c.All(), Recovered: c.Recovered}
}
