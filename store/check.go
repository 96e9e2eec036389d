package store

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// Check reads the whole file. It returns kv.ErrDamaged, with the place, if any page is invalid, lost or used twice, or if
// any value fails its checksum. Commits continue meanwhile; the file grows by what they change. The disk's read speed
// determines the duration.
func (db *DB) Check() error { return db.checkWith(unsealed) }

// CheckStructure is Check without the values. The damage that it finds cannot be repaired by writing or deleting rows,
// and rows may be missing without any other sign.
func (db *DB) CheckStructure() error {
	return db.checkWith(func(string, []byte, []byte) error { return nil })
}

func unsealed(table string, key, sealed []byte) error {
	_, err := unseal(table, key, sealed)
	return err
}

func (db *DB) checkWith(entry func(table string, key, sealed []byte) error) error {
	err := db.awaitFlush()
	if err != nil {
		return fmt.Errorf("check store: %w", err)
	}
	for range 10 {
		if err = db.checkUsable(); err != nil {
			break
		}
		err = guard(func() error { return db.bolt.View(func(tx *bbolt.Tx) error { return db.check(tx, entry) }) })
		if !errors.Is(err, errOvertaken) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("check store: %w", db.explain(err))
	}
	return nil
}

// check inspects the state that tx reads. While tx is open its pages are not reused, so that reading them is safe.
func (db *DB) check(tx *bbolt.Tx, entry func(table string, key, sealed []byte) error) error {
	newer, older, err := readMetas(db.file)
	if err != nil {
		return err
	}
	in := inspection{file: db.file, size: db.Size(), meta: newer}
	if id := uint64(tx.ID()); newer.txid != id {
		if older == nil || older.txid != id {
			return errOvertaken
		}
		in.meta = *older
	}
	in.entry = entry
	return in.run()
}

// errOvertaken means that two commits came between the begin of a transaction and the read of its meta page.
var errOvertaken = errors.New("the file changes too fast to be checked: try again")
