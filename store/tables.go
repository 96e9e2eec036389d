package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// tables is the bbolt file that holds the tables.
type tables struct {
	path     string
	log      *slog.Logger
	bolt     *bbolt.DB
	file     *os.File     // the file under bolt, which carries the lock
	corrupt  []CorruptRow // found when it was opened
	stale    bool         // one of the two meta pages was invalid when the file was opened
	panicked atomic.Bool  // bbolt panicked while it wrote: its locks may be held forever
}

// explain adds to the error of damage what to do about it.
func (t *tables) explain(err error) error {
	if !errors.Is(err, kv.ErrDamaged) {
		return err
	}
	return fmt.Errorf("%s: %w; keep a copy of it; if other nodes hold this world, start with an empty "+
		"directory and --join; else restore a backup with voxeld restore; what only this node held since is lost", t.path, err)
}

// usable returns an error once bbolt has panicked during a write: bbolt may hold its locks forever, and a reader would
// block.
func (t *tables) usable() error {
	if t.panicked.Load() {
		return damaged("it was found damaged while it was written to")
	}
	return nil
}

// begin opens a snapshot for a caller whose own code runs while it is open; that code must not run under guard.
func (t *tables) begin() (tx *bbolt.Tx, err error) {
	if err := t.usable(); err != nil {
		return nil, t.explain(err)
	}
	err = guard(func() error {
		tx, err = t.bolt.Begin(false)
		return err
	})
	return tx, t.explain(err)
}

// end closes a snapshot and returns err unwrapped, or the error of closing it.
func end(tx *bbolt.Tx, err error) error {
	if ending := guard(tx.Rollback); ending != nil {
		return errors.Join(err, ending)
	}
	return err
}

// get returns a copy of the value at key, nil if there is none.
func (t *tables) get(table string, key []byte) (value []byte, err error) {
	if err := t.usable(); err != nil {
		return nil, t.explain(err)
	}
	err = guard(func() error {
		return t.bolt.View(func(tx *bbolt.Tx) (err error) {
			value, err = getIn(tx, table, key)
			return err
		})
	})
	return value, t.explain(err)
}

// merge visits the rows of a transaction and the newer rows that replace them, in order.
func (t *tables) merge(c cursor, newer []kv.Write, visit func(row) error) error {
	table := c.table
	step := func() error {
		if err := guard(c.step); err != nil {
			return fmt.Errorf("read %s: %w", table, t.explain(err))
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

// scan is merge for callers that do not want damaged rows: it fails there.
func (t *tables) scan(c cursor, newer []kv.Write, visit func(key, value []byte) error) error {
	return t.merge(c, newer, func(r row) error {
		if r.damage != nil {
			return fmt.Errorf("scan %s: %w", c.table, t.explain(r.damage))
		}
		return visit(r.key, r.value)
	})
}

// update runs one transaction. bbolt syncs the pages, then the meta page that makes them valid: two fdatasyncs. After
// ErrFull nothing of it was written.
func (t *tables) update(change func(tx *bbolt.Tx) error) error {
	var id int
	err := guard(func() error {
		return t.bolt.Update(func(tx *bbolt.Tx) error {
			id = tx.ID()
			return change(tx)
		})
	})
	if errors.Is(err, ErrFull) {
		err = t.confirmFull(err, id)
	}
	if errors.Is(err, kv.ErrDamaged) {
		t.panicked.Store(true)
	}
	return t.explain(err)
}

// confirmFull returns the error of a transaction for which the disk had no space. Some disks report that only when a
// page is synced. If it was the meta page, the transaction may have happened, and the error is not ErrFull.
func (t *tables) confirmFull(full error, id int) error {
	var newest int
	if err := guard(func() error {
		return t.bolt.View(func(tx *bbolt.Tx) error {
			newest = tx.ID()
			return nil
		})
	}); err != nil {
		return err
	}
	if newest >= id {
		return errors.New(full.Error() + ": the last transaction may have happened or not") // not ErrFull
	}
	return full
}

// size returns the size of the file in bytes, 0 when it is closed.
func (t *tables) size() int64 {
	info, err := t.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

func (t *tables) close() error {
	if t.panicked.Load() {
		return release(t.file) // bbolt's own Close could block forever
	}
	return guard(t.bolt.Close)
}
