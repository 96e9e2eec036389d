package directory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Table stores the regions that this node is a member of: id, 8 bytes big-endian → region.
const Table = "regions"

// Storage persists regions.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
	Commit(writes []kv.Write) error
	// Keys is Scan without the values, which may be unreadable.
	Keys(table string, prefix []byte, visit func(key []byte) error) error
}

// Registry is the stored list of the regions that this node is a member of, without the catalog.
type Registry struct {
	storage Storage
	logger  *slog.Logger
	tally   membership.Tally
}

// NewRegistry returns the list in the storage. It deletes unreadable rows: the catalog has the same data. The storage's
// Run must not run yet.
func NewRegistry(storage Storage, logger *slog.Logger) (*Registry, error) {
	r := &Registry{storage: storage, logger: logger}
	if err := r.mend(); err != nil {
		return nil, err
	}
	all, err := r.All()
	for _, info := range all {
		r.tally.Put(info)
	}
	return r, err
}

// Tally returns the regions by their members, as this node has them.
func (r *Registry) Tally() *membership.Tally { return &r.tally }

// Forget leaves the region out of the Tally. Its rows are deleted by the writes of Deletion.
func (r *Registry) Forget(id uint64) { r.tally.Forget(id) }

// Key returns the key of a region's rows, or their prefix.
func Key(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

// Region returns the region as stored on this node, or actor.ErrNotHere if the node is not a member.
func (r *Registry) Region(id uint64) (nodemsg.Region, error) {
	row, err := r.storage.Get(Table, Key(id))
	switch {
	case err != nil:
		return nodemsg.Region{}, fmt.Errorf("look up region %d: %w", id, err)
	case row == nil:
		return nodemsg.Region{}, actor.ErrNotHere
	}
	info, err := nodemsg.DecodeRegion(row)
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("read region %d: %w", id, err)
	}
	return info, nil
}

// Put stores what this node knows of a region that it is a member of. That includes the term: records with an older
// term than the published one cannot be renewed after a restart.
func (r *Registry) Put(info nodemsg.Region) error {
	row, err := nodemsg.EncodeRegion(info)
	if err != nil {
		return fmt.Errorf("store region %d: %w", info.ID, err)
	}
	key := Key(info.ID)
	if before, err := r.storage.Get(Table, key); err == nil && bytes.Equal(before, row) {
		return nil
	}
	if err := r.storage.Commit([]kv.Write{{Table: Table, Key: key, Value: row}}); err != nil {
		return fmt.Errorf("store region %d: %w", info.ID, err)
	}
	r.tally.Put(info)
	return nil
}

// Reload counts a region that other code has stored in Table, if it has.
func (r *Registry) Reload(id uint64) error {
	info, err := r.Region(id)
	switch {
	case errors.Is(err, actor.ErrNotHere):
		return nil
	case err == nil:
		r.tally.Put(info)
	}
	return err
}

// All lists the regions that this node is a member of. Unreadable rows are left out.
func (r *Registry) All() ([]nodemsg.Region, error) {
	var infos []nodemsg.Region
	err := r.storage.Scan(Table, nil, func(_, value []byte) error {
		if info, err := nodemsg.DecodeRegion(value); err == nil {
			infos = append(infos, info)
		}
		return nil
	})
	if err != nil {
		return infos, fmt.Errorf("list regions: %w", err)
	}
	return infos, nil
}

// Deletion returns the writes that delete everything that is stored of a region, readable or not.
func (r *Registry) Deletion(id uint64) ([]kv.Write, error) {
	writes := []kv.Write{{Table: Table, Key: Key(id)}}
	err := r.storage.Keys(world.LandTable, Key(id), func(key []byte) error {
		writes = append(writes, kv.Write{Table: world.LandTable, Key: bytes.Clone(key)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list rows of region %d: %w", id, err)
	}
	return writes, nil
}

// mend deletes the unreadable rows of the node's list of regions: the catalog has the same data.
func (r *Registry) mend() error {
	var bad []kv.Write
	var keys [][]byte
	err := r.storage.Keys(Table, nil, func(key []byte) error {
		keys = append(keys, bytes.Clone(key))
		return nil
	})
	if err != nil {
		return fmt.Errorf("list regions: %w", err)
	}
	for _, key := range keys {
		row, err := r.storage.Get(Table, key)
		if err == nil {
			_, err = nodemsg.DecodeRegion(row)
		}
		if err != nil {
			bad = append(bad, kv.Write{Table: Table, Key: key})
			r.logger.Error("damaged row of the list of regions deleted; the catalog has the same data", "key", fmt.Sprintf("%x", key), "error", err)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	// Run does not run yet, so it does not write concurrently.
	if err := r.storage.Commit(bad); err != nil {
		return fmt.Errorf("repair list of regions: %w", err)
	}
	return nil
}
