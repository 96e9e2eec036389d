package store

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/kv"
)

// View calls read with a snapshot of the store as it is when View begins, over all tables at once: later commits are not
// visible. get and scan behave as Get and Scan, and are valid until read returns. View returns read's error unwrapped.
//
// read must be short (the file grows while a view is open) and must not call this DB.
func (db *DB) View(read func(
	get func(table string, key []byte) ([]byte, error),
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
) error,
) (err error) {
	db.overlay.RLock()
	newer := db.overlay.clone()
	tx, err := db.begin()
	db.overlay.RUnlock()
	if err != nil {
		return fmt.Errorf("view store: %w", err)
	}
	defer func() { err = end(tx, err) }()
	get := func(table string, key []byte) ([]byte, error) {
		if value, there := newer.get(table, key); there {
			if value == nil {
				return nil, nil
			}
			return append([]byte{}, value...), nil
		}
		var value []byte
		err := guard(func() (err error) {
			value, err = getIn(tx, table, key)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("get from %s: %w", table, db.explain(err))
		}
		return value, nil
	}
	return read(get, func(table string, prefix []byte, visit func(key, value []byte) error) error {
		return db.scanIn(tx, table, prefix, newer.rows(table, prefix), visit)
	})
}

// getIn returns a copy of the value at key, nil if there is none.
func getIn(tx *bbolt.Tx, table string, key []byte) ([]byte, error) {
	bucket := tx.Bucket([]byte(table))
	if bucket == nil {
		return nil, nil
	}
	sealed := bucket.Get(key)
	if sealed == nil {
		return nil, nil
	}
	value, err := unseal(table, key, sealed)
	if err != nil {
		return nil, err
	}
	return append([]byte{}, value...), nil
}

// scanIn is Scan within a transaction. Newer rows of the overlay, in order, take the place of the tables'.
func (db *DB) scanIn(tx *bbolt.Tx, table string, prefix []byte, newer []kv.Write, visit func(key, value []byte) error) error {
	return db.merge(tx, table, prefix, newer, func(r row) error {
		if r.damage != nil {
			return fmt.Errorf("scan %s: %w", table, db.explain(r.damage))
		}
		return visit(r.key, r.value)
	})
}

// merge visits the rows of a transaction and the newer rows that replace them, in order.
func (db *DB) merge(tx *bbolt.Tx, table string, prefix []byte, newer []kv.Write, visit func(row) error) error {
	c := cursor{tx: tx, table: table, prefix: prefix}
	step := func() error {
		if err := guard(c.step); err != nil {
			return fmt.Errorf("read %s: %w", table, db.explain(err))
		}
		return nil
	}
	if err := step(); err != nil {
		return err
	}
	for c.key != nil || len(newer) > 0 {
		order := -1 // of the overlay's next row and the tables'
		switch {
		case len(newer) == 0:
			order = 1
		case c.key != nil:
			order = bytes.Compare(newer[0].Key, c.key)
		}
		r := c.row
		if order <= 0 {
			r, newer = row{key: newer[0].Key, value: newer[0].Value}, newer[1:]
		}
		if order > 0 || r.value != nil {
			if err := visit(r); err != nil {
				return err
			}
		}
		if order >= 0 {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// row is a row at which a cursor stands.
type row struct {
	key, value []byte // a nil key at the end
	damage     error  // of the value, which must not be read then
}

// cursor walks the rows of a table whose keys begin with a prefix.
type cursor struct {
	tx     *bbolt.Tx
	table  string
	prefix []byte
	bolt   *bbolt.Cursor
	row
}

// step moves to the next row. It touches every byte of it, so that a fault can only happen here, where it is caught.
func (c *cursor) step() error {
	var sealed []byte
	if c.bolt == nil {
		bucket := c.tx.Bucket([]byte(c.table))
		if bucket == nil {
			c.key = nil
			return nil
		}
		c.bolt = bucket.Cursor()
		c.key, sealed = c.bolt.Seek(c.prefix)
	} else {
		c.key, sealed = c.bolt.Next()
	}
	if c.key == nil || !bytes.HasPrefix(c.key, c.prefix) {
		c.key = nil
		return nil
	}
	if c.value, c.damage = unseal(c.table, c.key, sealed); c.damage != nil {
		c.key = bytes.Clone(c.key) // nothing has verified the row yet: its length may be damaged
	}
	return nil
}
