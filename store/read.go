package store

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// Get returns a copy of the value at key, or nil, nil if there is none. It sees every commit that has returned. It fails
// with kv.ErrDamaged or ErrClosed.
func (db *DB) Get(table string, key []byte) ([]byte, error) {
	value, err := db.get(table, key)
	if err != nil {
		return nil, fmt.Errorf("get from %s: %w", table, db.explain(err))
	}
	return value, nil
}

func (db *DB) get(table string, key []byte) ([]byte, error) {
	var found []byte
	db.overlay.RLock()
	defer db.overlay.RUnlock()
	if value, there := db.overlay.get(table, key); there {
		if value == nil {
			return nil, nil
		}
		return append([]byte{}, value...), nil
	}
	err := guard(func() error {
		if err := db.checkUsable(); err != nil {
			return err
		}
		return db.bolt.View(func(tx *bbolt.Tx) (err error) {
			found, err = getIn(tx, table, key)
			return err
		})
	})
	return found, err
}

// Scan visits the entries of the table whose keys begin with prefix, in the order of the keys' bytes, as they were when
// Scan began. It stops at the first error of visit and returns it unwrapped; other errors are kv.ErrDamaged and ErrClosed.
//
// key and value are valid only during visit and must not be modified. visit must be short (the file grows while a scan is
// open) and must not call this DB: a Commit inside would wait for the scan's end.
func (db *DB) Scan(table string, prefix []byte, visit func(key, value []byte) error) (err error) {
	db.overlay.RLock()
	rows := db.overlay.rows(table, prefix)
	tx, err := db.begin()
	db.overlay.RUnlock()
	if err != nil {
		return fmt.Errorf("scan %s: %w", table, err)
	}
	defer func() { err = end(tx, err) }()

	return db.scanIn(tx, table, prefix, rows, visit)
}

// Tables returns the names of the tables that have been written to, in order.
func (db *DB) Tables() ([]string, error) {
	db.overlay.RLock()
	defer db.overlay.RUnlock()
	all := db.overlay.tables()
	err := guard(func() error {
		if err := db.checkUsable(); err != nil {
			return err
		}
		return db.bolt.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
				all[string(name)] = string(name) != metaTable
				return nil
			})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", db.explain(err))
	}
	maps.DeleteFunc(all, func(_ string, there bool) bool { return !there })
	return slices.Sorted(maps.Keys(all)), nil
}

// Backup writes a whole store to w, as it is when Backup begins: a file that Open can open. Commits continue meanwhile;
// the file grows by what they change.
func (db *DB) Backup(w io.Writer) (err error) {
	if err := db.awaitFlush(); err != nil {
		return fmt.Errorf("back up store: %w", err)
	}
	tx, err := db.begin()
	if err != nil {
		return fmt.Errorf("back up store: %w", err)
	}
	defer func() { err = end(tx, err) }()
	if _, err := tx.WriteTo(w); err != nil {
		return fmt.Errorf("back up store: %w", err)
	}
	return nil
}

// begin opens a snapshot for a caller whose own code runs while it is open; that code must not run under guard.
func (db *DB) begin() (tx *bbolt.Tx, err error) {
	err = guard(func() error {
		if err := db.checkUsable(); err != nil {
			return err
		}
		tx, err = db.bolt.Begin(false)
		return err
	})
	return tx, db.explain(err)
}

// checkUsable returns an error once bbolt has panicked during a write: bbolt may hold its locks forever, and a reader would
// block.
func (db *DB) checkUsable() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mu.panicked {
		return damaged("it was found damaged while it was written to")
	}
	return nil
}

// end closes a snapshot and returns err unwrapped, or the error of closing it.
func end(tx *bbolt.Tx, err error) error {
	if ending := guard(tx.Rollback); ending != nil {
		return errors.Join(err, ending)
	}
	return err
}

// Size returns the size of the file in bytes, 0 when it is closed. The file never shrinks: freed space is reused.
func (db *DB) Size() int64 {
	info, err := db.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
