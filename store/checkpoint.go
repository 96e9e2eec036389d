package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// A checkpoint moves the journal's contents into the tables once it holds checkpointBytes of records, or after
	// checkpointAfter. So a restart has little to read back, and a row that is written repeatedly enters the tables once.
	checkpointBytes = 8 << 20
	checkpointAfter = 5 * time.Second
	// spareBytes must be free on the disk, beside four times the data that waits for the tables, for commits to go to the
	// journal: acknowledged data must find room in the tables. On a fuller disk commits go into the tables at once, and
	// fail there.
	spareBytes = 32 << 20
)

// journalKey is the row of the meta table with the number of the last journal record that the tables contain: u64,
// big-endian.
var journalKey = []byte("journal")

// pen is the state that a writer needs. It belongs to the goroutine that has locked it: Run, or a caller of Commit that
// finds no writer; before that, Open.
type pen struct {
	sync.Mutex
	writing bool  // Run runs, and nothing has ended the writing
	failure error // why writing has ended, if not by the end of Run
	full    bool  // the last transaction found no space
	journal journal
	bytes   int64       // of records in the current file
	older   int64       // of records in the other one, while a checkpoint moves them into the tables
	number  uint64      // of the last record in the tables, or on its way into them
	under   chan error  // delivers the result of the checkpoint in progress; nil if there is none
	stuck   bool        // the last checkpoint failed for lack of space; its layer is still aging
	due     *time.Timer // runs while the journal is not empty
}

// recoverJournal moves what a crash left in the journal into the tables.
func (db *DB) recoverJournal() error {
	db.pen.journal.paths = journalPaths(db.path)
	value, err := db.get(metaTable, journalKey)
	if err != nil {
		return db.explain(err)
	}
	if value != nil {
		if len(value) != 8 {
			return db.explain(damaged("the journal's row has %d bytes", len(value)))
		}
		db.pen.number = binary.BigEndian.Uint64(value)
	}
	records, err := readJournal(db.pen.journal.paths, db.pen.number)
	if err != nil {
		return db.explain(err)
	}
	db.pen.journal.last = db.pen.number + uint64(len(records))
	if len(records) == 0 {
		return nil
	}
	aging := make(layer)
	for _, r := range records {
		aging.put(r.writes)
		for _, w := range r.writes {
			db.pen.older += int64(len(w.Key) + len(w.Value))
		}
	}
	db.overlay.aging = aging
	db.pen.number = db.pen.journal.last
	err = db.write(aging, db.pen.number)
	if errors.Is(err, ErrFull) {
		db.log.Error("the store is full: the journal waits for space in the tables", "path", db.path, "error", err)
		db.pen.stuck = true
		return nil
	}
	if err != nil {
		return db.explain(err)
	}
	db.checkpointed()
	return nil
}

// journals reports whether the requests may go to the journal: they fit, and enough space is left for the tables to hold
// them later.
func (db *DB) journals(batch []*request) bool {
	n := int64(journalHead)
	for _, r := range batch {
		if len(r.writes) == 0 {
			return false // it deletes rows that it must look up in the tables
		}
		n += int64(r.bytes)
		for _, w := range r.writes {
			n += int64(len(w.Table)) + 9
		}
	}
	return !db.pen.stuck && n <= journalMax && db.spare() >= spareBytes+4*(db.pen.bytes+db.pen.older+n)
}

// spare returns the number of bytes by which the tables can still grow.
func (db *DB) spare() int64 {
	free := freeSpace(db.path)
	if limit := db.maxSize; limit > 0 {
		free = min(free, limit-db.Size())
	}
	return free
}

// record makes the requests durable in the journal, and then visible.
func (db *DB) record(batch []*request) error {
	encoded, writes := encodeRecord(batch)
	p := &db.pen
	if !p.journal.room(len(encoded)) {
		if err := db.await(); err != nil {
			return err
		}
	}
	if p.under == nil && (p.bytes > checkpointBytes || !p.journal.room(len(encoded))) {
		db.beginCheckpoint()
	}
	if err := p.journal.append(encoded); err != nil {
		return db.explain(err)
	}
	if p.bytes == 0 {
		p.due.Reset(checkpointAfter)
	}
	p.bytes += int64(len(encoded))
	db.overlay.Lock()
	db.overlay.fresh.put(writes)
	db.overlay.Unlock()
	db.metrics.fsyncs.Inc()
	db.metrics.batch.Observe(float64(len(batch)))
	return nil
}

// beginCheckpoint starts to move the journal's contents into the tables. Commits continue in the other file. No
// checkpoint may be in progress.
func (db *DB) beginCheckpoint() {
	aging := db.age()
	number := db.pen.number
	under := make(chan error, 1)
	db.pen.under = under
	go func() { // awaited by await
		under <- db.write(aging, number)
		select {
		case db.landing <- struct{}{}:
		default: // a signal is pending already
		}
	}()
}

// checkpointDue begins a checkpoint, or repeats one that found no space.
func (db *DB) checkpointDue() error {
	switch {
	case db.pen.stuck:
		return db.grave(db.flush())
	case db.pen.under == nil && db.pen.bytes > 0:
		db.beginCheckpoint()
	}
	return nil
}

// age makes the fresh layer the aging one, and switches to the other file.
func (db *DB) age() layer {
	p := &db.pen
	p.older, p.bytes, p.number = p.bytes, 0, p.journal.last
	p.journal.turn()
	p.due.Stop()
	db.overlay.Lock()
	defer db.overlay.Unlock()
	db.overlay.aging, db.overlay.fresh = db.overlay.fresh, make(layer)
	return db.overlay.aging
}

// await waits for the checkpoint in progress, if there is one.
func (db *DB) await() error {
	if db.pen.under == nil {
		return nil
	}
	return db.landed(<-db.pen.under)
}

// arrived handles the end of the checkpoint in progress, if it has ended.
func (db *DB) arrived() error {
	select {
	case err := <-db.pen.under:
		return db.landed(err)
	default:
		return nil // the writer has already waited for it
	}
}

// landed handles the result of the checkpoint in progress. flush repeats one that found no space.
func (db *DB) landed(err error) error {
	db.pen.under = nil
	switch {
	case err == nil:
		db.checkpointed()
		if db.pen.bytes > 0 { // commits made meanwhile would wait for checkpointBytes
			db.pen.due.Reset(checkpointAfter)
		}
	case errors.Is(err, ErrFull):
		db.pen.stuck = true
		db.pen.due.Reset(checkpointAfter)
	}
	return err
}

// checkpointed runs when the tables contain the aging layer.
func (db *DB) checkpointed() {
	db.pen.older, db.pen.stuck = 0, false
	db.noteFull(false, nil)
	db.overlay.Lock()
	defer db.overlay.Unlock()
	db.overlay.aging = nil
}

// flush returns when the tables contain every commit.
func (db *DB) flush() error {
	if err := db.await(); err != nil && !errors.Is(err, ErrFull) {
		return err
	}
	if db.pen.stuck {
		if err := db.landed(db.write(db.overlay.aging, db.pen.number)); err != nil {
			return err
		}
	}
	if db.pen.bytes == 0 {
		return nil
	}
	aging := db.age()
	return db.landed(db.write(aging, db.pen.number))
}

// write writes a layer into the tables, with the number of its last record. Any goroutine may call it, one at a time.
func (db *DB) write(l layer, number uint64) error {
	err := db.update(func(tx *bbolt.Tx) error {
		for _, w := range l.inOrder() {
			if err := put(tx, w); err != nil {
				return fmt.Errorf("write to table %s: %w", w.Table, err)
			}
		}
		value := binary.BigEndian.AppendUint64(nil, number)
		return tx.Bucket([]byte(metaTable)).Put(journalKey, seal(metaTable, journalKey, value))
	})
	if err == nil {
		db.metrics.checkpoints.Inc()
	}
	return err
}

// settled makes Run flush, so that the tables alone contain every earlier commit. If Run has ended, settled itself
// flushes what a full disk may have left in the journal, or returns why writing has ended.
func (db *DB) settled() error {
	db.mu.Lock()
	running := db.mu.running
	db.mu.Unlock()
	if !running {
		return nil
	}
	reply := make(chan error, 1)
	select {
	case db.flushes <- reply:
		select {
		case err := <-reply:
			return err
		case <-db.done:
		}
	case <-db.done:
	}
	db.pen.Lock()
	defer db.pen.Unlock()
	if db.pen.failure != nil {
		return db.pen.failure
	}
	return db.flush()
}
