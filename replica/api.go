package replica

import (
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// MaxEntry is the largest entry that Propose accepts, in bytes.
const MaxEntry = raftframe.MaxEntry

// The parts of the API that subpackages define.
type (
	// Storage is the underlying durable key-value store.
	Storage = raftlog.Storage
	// TablePrefix selects rows of an owner's state.
	TablePrefix = raftlog.TablePrefix
	// Member is one replica of a group.
	Member = raftlog.Member
)

// Errors that subpackages define.
var (
	// ErrImplausible marks messages and snapshots that no honest member sends.
	ErrImplausible = raftframe.ErrImplausible
	// ErrSnapshotSize marks a state that is too large for a snapshot.
	ErrSnapshotSize = raftframe.ErrSnapshotSize
	ErrTombstone    = raftlog.ErrTombstone
	ErrNotMember    = raftlog.ErrNotMember
	ErrNotOpen      = raftlog.ErrNotOpen
)

// AppliedIn reads a group's applied index from a snapshot of the storage; get comes from Storage.View. The owner's
// tables, read through the same view, contain exactly the entries up to it.
func AppliedIn(get func(table string, key []byte) ([]byte, error), group uint64) (uint64, error) {
	return raftlog.AppliedIn(get, group)
}
