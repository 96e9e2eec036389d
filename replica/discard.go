package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/kv"
)

// keyLister is a Storage that can list keys whose values are damaged.
type keyLister interface {
	Keys(table string, prefix []byte, visit func(key []byte) error) error
}

// listKeys visits the keys that begin with prefix, including those of damaged rows if the storage supports it.
func listKeys(s Storage, table string, prefix []byte, visit func(key []byte) error) error {
	if k, ok := s.(keyLister); ok {
		return k.Keys(table, prefix, visit)
	}
	return s.Scan(table, prefix, func(key, _ []byte) error { return visit(key) })
}

// Discard is Remove for a group that cannot be read any more. The other members must have removed this node's replica id
// from the group, so that none of them relies on its promises. Discard leaves a tombstone for that id. It deletes every
// row of the group without reading one. The group must not be open. The error is ErrOpen, ErrStopped, or one of the
// storage's.
func (h *Host) Discard(group, id uint64, also ...kv.Write) error {
	reply := make(chan error, 1)
	h.post(func() { reply <- h.discard(group, id, also) })
	select {
	case err := <-reply:
		if err != nil {
			return fmt.Errorf("discard group %d: %w", group, err)
		}
		return nil
	case <-h.stopped:
		return fmt.Errorf("discard group %d: %w", group, ErrStopped)
	}
}

func (h *Host) discard(group, id uint64, also []kv.Write) error {
	if h.replicas[group] != nil ||
		slices.ContainsFunc(h.founding, func(f *founding) bool { return f.group == group }) {
		return ErrOpen
	}
	if id == 0 {
		return errors.New("replica id 0 is invalid")
	}
	writes := slices.Clone(also)
	for _, table := range []string{tableLog, tableState} {
		err := listKeys(h.storage, table, groupPrefix(group), func(key []byte) error {
			writes = append(writes, kv.Write{Table: table, Key: bytes.Clone(key)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	writes = append(writes, kv.Write{
		Table: tableState, Key: stateKey(group, kindTombstone), Value: binary.BigEndian.AppendUint64(nil, id),
	})
	if err := h.store(writes, 1, 0); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}

// checkNoLog returns an error if a group without a state has a log. Such a group must not be founded again, because its
// vote was lost.
func checkNoLog(storage Storage, group uint64) error {
	err := storage.Scan(tableLog, groupPrefix(group), func([]byte, []byte) error {
		return fmt.Errorf("%w: a log without a state", kv.ErrDamaged)
	})
	if err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	return nil
}

// AppliedIn reads a group's applied index from a snapshot of the storage; get comes from Storage.View. The owner's
// tables, read through the same view, contain exactly the entries up to it.
func AppliedIn(get func(table string, key []byte) ([]byte, error), group uint64) (uint64, error) {
	value, err := get(tableState, stateKey(group, kindState))
	if err != nil {
		return 0, fmt.Errorf("read applied index of group %d: %w", group, err)
	}
	s, err := decodeState(value)
	if err != nil {
		return 0, fmt.Errorf("read applied index of group %d: %w", group, err)
	}
	return s.applied, nil
}

// CheckStored reads everything that is stored of a group's log and state, as of one moment, and returns an error if any
// of it is invalid. The group may be open.
func (h *Host) CheckStored(group uint64) error {
	err := h.storage.View(func(get func(string, []byte) ([]byte, error),
		scan func(string, []byte, func(key, value []byte) error) error,
	) error {
		view := &storageView{Storage: h.storage, get: get, scan: scan}
		s, conf, err := loadState(view, group)
		if err == nil && conf != nil {
			_, err = loadLog(view, group, s, conf)
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrTombstone) {
		return fmt.Errorf("check group %d: %w", group, err)
	}
	return nil
}

// storageView is a snapshot of a Storage.
type storageView struct {
	Storage
	get  func(table string, key []byte) ([]byte, error)
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error
}

func (v *storageView) Get(table string, key []byte) ([]byte, error) { return v.get(table, key) }

func (v *storageView) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	return v.scan(table, prefix, visit)
}
