package store

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// Get returns a copy of the value at key, or nil, nil if there is none. It sees every commit that has returned. It
// fails with kv.ErrDamaged or ErrClosed.
func (db *DB) Get(table string, key []byte) ([]byte, error) {
	db.overlay.RLock()
	defer db.overlay.RUnlock()
	value, found := db.overlay.get(table, key)
	if found {
		return bytes.Clone(value), nil
	}
	value, err := db.tables.get(table, key)
	if err != nil {
		return nil, fmt.Errorf("get from %s: %w", table, err)
	}
	return value, nil
}

// Scan visits the entries of the table whose keys begin with prefix, in the order of the keys' bytes, as they were when
// Scan began. It stops at the first error of visit and returns it unwrapped; other errors are kv.ErrDamaged and
// ErrClosed.
//
// key and value are valid only during visit and must not be modified. visit must be short (the file grows while a scan
// is open) and must not call this DB: a Commit inside would wait for the scan's end.
func (db *DB) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	return db.read(table, prefix, func(tx *bbolt.Tx, newer []kv.Write) error {
		return db.tables.scan(cursor{tx: tx, table: table, prefix: prefix}, newer, visit)
	})
}

// ScanFrom is Scan without the keys below from. So a large table can be read in pieces: a commit that makes the file
// grow waits for every open scan.
func (db *DB) ScanFrom(table string, prefix, from []byte, visit func(key, value []byte) error) error {
	return db.read(table, prefix, func(tx *bbolt.Tx, newer []kv.Write) error {
		first, _ := slices.BinarySearchFunc(newer, from, func(w kv.Write, key []byte) int { return bytes.Compare(w.Key, key) })
		return db.tables.scan(cursor{tx: tx, table: table, prefix: prefix, from: from}, newer[first:], visit)
	})
}

// Keys visits the keys of the table that begin with prefix, in order, including those of damaged rows, so that a caller
// can delete them. Otherwise it is like Scan: keys that are only in the journal are visited, too.
func (db *DB) Keys(table string, prefix []byte, visit func(key []byte) error) error {
	return db.read(table, prefix, func(tx *bbolt.Tx, newer []kv.Write) error {
		return db.tables.merge(cursor{tx: tx, table: table, prefix: prefix}, newer, func(r row) error { return visit(r.key) })
	})
}

// read calls what with a snapshot of the tables, and the newer rows of the table whose keys begin with prefix.
func (db *DB) read(table string, prefix []byte, what func(tx *bbolt.Tx, newer []kv.Write) error) (err error) {
	db.overlay.RLock()
	newer := db.overlay.rows(table, prefix)
	tx, err := db.tables.begin()
	db.overlay.RUnlock()
	if err != nil {
		return fmt.Errorf("scan %s: %w", table, err)
	}
	defer func() { err = end(tx, err) }()
	return what(tx, newer)
}

// View calls read with a snapshot of the store as it is when View begins, over all tables at once: later commits are
// not visible. get and scan behave as Get and Scan, and are valid until read returns. View returns read's error
// unwrapped.
//
// read must be short (the file grows while a view is open) and must not call this DB.
func (db *DB) View(read func(
	get func(table string, key []byte) ([]byte, error),
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
) error,
) (err error) {
	db.overlay.RLock()
	newer := db.overlay.clone()
	tx, err := db.tables.begin()
	db.overlay.RUnlock()
	if err != nil {
		return fmt.Errorf("view store: %w", err)
	}
	defer func() { err = end(tx, err) }()
	get := func(table string, key []byte) ([]byte, error) {
		value, found := newer.get(table, key)
		if found {
			return bytes.Clone(value), nil
		}
		err := guard(func() (err error) {
			value, err = getIn(tx, table, key)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("get from %s: %w", table, db.tables.explain(err))
		}
		return value, nil
	}
	return read(get, func(table string, prefix []byte, visit func(key, value []byte) error) error {
		return db.tables.scan(cursor{tx: tx, table: table, prefix: prefix}, newer.rows(table, prefix), visit)
	})
}

// Check reads the whole file. It returns kv.ErrDamaged, with the place, if any page is invalid, lost or used twice, or
// if any value fails its checksum. Commits continue meanwhile; the file grows by what they change. The disk's read
// speed determines the duration.
func (db *DB) Check() error {
	return db.check(func(table string, key, sealed []byte) error {
		_, err := unseal(table, key, sealed)
		return err
	})
}

// CheckStructure is Check without the values. The damage that it finds cannot be repaired by writing or deleting rows,
// and rows may be missing without any other sign.
func (db *DB) CheckStructure() error {
	return db.check(func(string, []byte, []byte) error { return nil })
}

// check inspects the state of the file after a flush. Until its transaction ends, the pages of that state are not
// reused, so that reading them is safe.
func (db *DB) check(entry func(table string, key, sealed []byte) error) error {
	in := inspection{file: db.tables.file, entry: entry}
	var tx *bbolt.Tx
	err := db.flush(func() (err error) {
		if tx, err = db.tables.begin(); err != nil {
			return err
		}
		in.size = db.tables.size()
		in.meta, _, err = readMetas(in.file)
		return db.tables.explain(err)
	})
	if err == nil {
		err = db.tables.explain(in.run())
	}
	if tx != nil {
		err = end(tx, err)
	}
	if err != nil {
		return fmt.Errorf("check store: %w", err)
	}
	return nil
}

// CorruptRows returns the rows that were found corrupt when the store was opened. In a file of more than 256 MiB the
// values are not read then; Check does that.
func (db *DB) CorruptRows() []CorruptRow { return slices.Clone(db.tables.corrupt) }

// Size returns the size of the file in bytes, 0 when it is closed. The file never shrinks: freed space is reused.
func (db *DB) Size() int64 { return db.tables.size() }
