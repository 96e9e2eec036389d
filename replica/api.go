package replica

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/internal/kv"
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
	// Reader reads durable tables.
	Reader = raftlog.Reader
	// Origin is the position in a group's log from which a restored group continues.
	Origin = raftlog.Origin
	// Fork is the beginning of a group that another group's entry makes.
	Fork = raftlog.Fork

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

// The state in which a group is founded; the first entry follows.
const (
	FoundingIndex = raftlog.FoundingIndex
	FoundingTerm  = raftlog.FoundingTerm
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

// View calls read with a snapshot of the storage.
func View(s Storage, read func(r Reader) error) error { return raftlog.ReadView(s, read) }

// OriginIn reads the position and the members of a group from a snapshot of the storage. The owner's tables, read
// through the same snapshot, contain exactly the entries up to it. The error is ErrNotOpen if nothing is stored of the
// group.
func OriginIn(r Reader, group uint64) (Origin, Configured, error) {
	from, conf, err := raftlog.OriginIn(r, group)
	if err != nil {
		return Origin{}, Configured{}, err
	}
	return from, raftgroup.NewConfigured(conf), nil
}

// Restoration returns the writes that make self the only member of a group that continues from the origin under a new
// replica id and with one more recovery, in the place of everything that is stored of the group. It also returns where
// the group then stands. Storage must not be used by a Host at the time: a Host restores with Host.Restore.
func Restoration(storage Reader, self string, group uint64, from Origin) (Configured, []kv.Write, error) {
	conf, writes, err := raftlog.Restore(storage, self, group, from)
	if err != nil {
		return Configured{}, nil, fmt.Errorf("restore group %d: %w", group, err)
	}
	return raftgroup.NewConfigured(conf), writes, nil
}
