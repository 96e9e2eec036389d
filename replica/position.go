package replica

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/kv"
)

// Position describes what this node stores of a group: how far its copy has come, and its members.
type Position struct {
	Replica  uint64 // this node's replica id; 0 if it is no longer a member
	Term     uint64
	Last     uint64 // index of the last entry in the log, and its term
	LastTerm uint64
	Commit   uint64
	Applied  uint64
	Members  Configured
}

// Position reads what is stored of a group, open or not. The newest data of an open group may not be stored yet. It costs
// a read of the group's log, and may be called from any goroutine. The error is ErrNotOpen if this node stores nothing of
// the group, ErrTombstone, kv.ErrDamaged, or one of the storage's.
func (h *Host) Position(group uint64) (Position, error) {
	p, err := h.position(group)
	if err != nil {
		return Position{}, fmt.Errorf("position of group %d: %w", group, err)
	}
	return p, nil
}

func (h *Host) position(group uint64) (p Position, err error) {
	err = h.storage.View(func(
		get func(table string, key []byte) ([]byte, error),
		scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
	) error {
		moment := &readOnlyStorage{get: get, scan: scan}
		s, conf, err := (&Host{storage: moment}).load(group)
		switch {
		case err != nil:
			return err
		case conf == nil:
			return ErrNotOpen
		}
		l, err := loadLog(moment, group, s, conf)
		if err != nil {
			return err
		}
		p = Position{
			Replica: conf.own(h.self), Term: s.term, Last: l.last, Commit: s.commit, Applied: s.applied,
			Members: Configured{Index: conf.Index, Members: conf.all(), Recovered: conf.Recovered},
		}
		p.LastTerm, err = l.Term(l.last)
		return err
	})
	return p, err
}

// readOnlyStorage is a read-only snapshot of a Storage.
type readOnlyStorage struct {
	get  func(table string, key []byte) ([]byte, error)
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error
}

func (r *readOnlyStorage) Get(table string, key []byte) ([]byte, error) {
	value, err := r.get(table, key)
	return bytes.Clone(value), err
}

func (r *readOnlyStorage) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	return r.scan(table, prefix, visit)
}

func (r *readOnlyStorage) Commit([]kv.Write) error { return errors.New("storage is read-only") }

func (r *readOnlyStorage) View(func(
	get func(table string, key []byte) ([]byte, error),
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
) error,
) error {
	return errors.New("storage is already a view")
}

// Stalled returns why storage refuses writes; nil while it does not. Any goroutine may call it.
func (h *Host) Stalled() error {
	if cause := h.stalled.Load(); cause != nil {
		return *cause
	}
	return nil
}
