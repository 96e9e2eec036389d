package store

import (
	"bytes"
	"errors"
	"sync/atomic"
	"time"
)

// ErrSlow is returned by a read that has waited too long for the disk. It says nothing about what is stored.
var ErrSlow = errors.New("the disk does not answer")

// readWithin is how long a bounded read may take.
const readWithin = time.Second

// Bounded is a DB for those whose callers do not wait for the disk. Reads seldom do: they come from the journal's
// overlay and the kernel's cache. But bbolt holds a lock while it writes the page that ends a checkpoint. If the disk
// hangs just then, all reads wait until it answers.
type Bounded struct {
	*DB
	overdue atomic.Int32 // reads that have failed with ErrSlow, and have not ended
}

// NewBounded returns a Bounded of the DB.
func NewBounded(db *DB) *Bounded { return &Bounded{DB: db} }

// Get is DB.Get, but fails with ErrSlow if that takes longer than a second, and at once while an earlier one does.
func (b *Bounded) Get(table string, key []byte) ([]byte, error) {
	if b.overdue.Load() > 0 {
		return nil, ErrSlow
	}
	type answer struct {
		value []byte
		err   error
	}
	done := make(chan answer, 1)
	key = bytes.Clone(key) // the caller may go on before the read has ended
	go func() {
		value, err := b.DB.Get(table, key)
		done <- answer{value, err}
	}()
	within := time.NewTimer(readWithin)
	defer within.Stop()
	select {
	case got := <-done:
		return got.value, got.err
	case <-within.C:
		b.overdue.Add(1)
		go func() {
			<-done
			b.overdue.Add(-1)
		}()
		return nil, ErrSlow
	}
}
