package replica

import (
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// The parts of the API that subpackages define.
type (
	// Storage is the underlying durable key-value store.
	Storage = raftlog.Storage
	// TablePrefix selects rows of an owner's state.
	TablePrefix = raftlog.TablePrefix
	// Member is one replica of a group.
	Member = raftlog.Member

	// Group is an open raft group, used by its owner.
	Group = raftgroup.Group
	// Status describes a group as seen from this node.
	Status = raftgroup.Status
	// Progress is how far a member has come.
	Progress = raftgroup.Progress

	// Delivery is an event for a group's owner: one of the following.
	Delivery = raftgroup.Delivery
	// Committed is an entry that is safe.
	Committed = raftgroup.Committed
	// Leadership reports a change of the group's leader.
	Leadership = raftgroup.Leadership
	// Configured reports the group's members from an entry on.
	Configured = raftgroup.Configured
	// Restored reports that a snapshot replaced entries.
	Restored = raftgroup.Restored
	// Removed reports that this node is no longer a member.
	Removed = raftgroup.Removed
	// Failed is the last delivery: the group has stopped on this node.
	Failed = raftgroup.Failed
)

// Errors that subpackages define and callers check.
var (
	ErrTombstone = raftlog.ErrTombstone
	ErrNotMember = raftlog.ErrNotMember
	ErrNotOpen   = raftlog.ErrNotOpen

	ErrNotLeader  = raftgroup.ErrNotLeader
	ErrOverloaded = raftgroup.ErrOverloaded
	ErrStorage    = raftgroup.ErrStorage
	ErrClosed     = raftgroup.ErrClosed
	ErrOpen       = raftgroup.ErrOpen
	ErrStopped    = raftgroup.ErrStopped
	ErrReplaced   = raftgroup.ErrReplaced
)

// AppliedIn reads a group's applied index from a snapshot of the storage; get comes from Storage.View. The owner's
// tables, read through the same view, contain exactly the entries up to it.
func AppliedIn(get func(table string, key []byte) ([]byte, error), group uint64) (uint64, error) {
	return raftlog.AppliedIn(get, group)
}
