package replica

import "github.com/voxelpopuli/voxeld/replica/raftlog"

// The parts of the API that subpackages define.
type (
	// Storage is the underlying durable key-value store.
	Storage = raftlog.Storage
	// TablePrefix selects rows of an owner's state.
	TablePrefix = raftlog.TablePrefix
	// Member is one replica of a group.
	Member = raftlog.Member
)

// Errors of calls about stored groups.
var (
	ErrTombstone = raftlog.ErrTombstone
	ErrNotMember = raftlog.ErrNotMember
	ErrNotOpen   = raftlog.ErrNotOpen
)

// AppliedIn reads a group's applied index from a snapshot of the storage; get comes from Storage.View. The owner's
// tables, read through the same view, contain exactly the entries up to it.
func AppliedIn(get func(table string, key []byte) ([]byte, error), group uint64) (uint64, error) {
	return raftlog.AppliedIn(get, group)
}
