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

// writerState is the state that a writer needs. It belongs to the goroutine that has locked it: Run, or a caller of
// Commit that finds no writer; before that, Open.
type writerState struct {
	sync.Mutex
	writing         bool  // Run runs, and nothing has ended the writing
	failure         error // why writing has ended, if not by the end of Run
	full            bool  // the last transaction found no space
	journal         journal
	bytes           int64       // of records in the current file
	flushingBytes   int64       // of records in the other one, while a checkpoint moves them into the tables
	number          uint64      // of the last record in the tables, or on its way into them
	checkpoint      chan error  // delivers the result of the checkpoint in progress; nil if there is none
	stuck           bool        // the last checkpoint failed for lack of space; its layer is still the flushing one
	checkpointTimer *time.Timer // runs while the journal is not empty
}

// recoverJournal moves what a crash left in the journal into the tables.
func (db *DB) recoverJournal() error {
	db.writer.journal.paths = journalPaths(db.path)
	value, err := db.get(metaTable, journalKey)
	if err != nil {
		return db.explain(err)
	}
	if value != nil {
		if len(value) != 8 {
			return db.explain(damaged("the journal's row has %d bytes", len(value)))
		}
		db.writer.number = binary.BigEndian.Uint64(value)
	}
	records, err := readJournal(db.writer.journal.paths, db.writer.number)
	if err != nil {
		return db.explain(err)
	}
	db.writer.journal.last = db.writer.number + uint64(len(records))
	if len(records) == 0 {
		return nil
	}
	flushing := make(layer)
	for _, r := range records {
		flushing.put(r.writes)
		for _, w := range r.writes {
			db.writer.flushingBytes += int64(len(w.Key) + len(w.Value))
		}
	}
	db.overlay.flushing = flushing
	db.writer.number = db.writer.journal.last
	err = db.write(flushing, db.writer.number)
	if errors.Is(err, ErrFull) {
		db.log.Error("the store is full: the journal waits for space in the tables", "path", db.path, "error", err)
		db.writer.stuck = true
		return nil
	}
	if err != nil {
		return db.explain(err)
	}
	db.dropFlushed()
	return nil
}

// fitsJournal reports whether the requests may go to the journal: they fit, and enough space is left for the tables to hold
// them later.
func (db *DB) fitsJournal(batch []*request) bool {
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
	return !db.writer.stuck && n <= journalMax && db.spaceLeft() >= spareBytes+4*(db.writer.bytes+db.writer.flushingBytes+n)
}

// spaceLeft returns the number of bytes by which the tables can still grow.
func (db *DB) spaceLeft() int64 {
	free := freeSpace(db.path)
	if limit := db.maxSize; limit > 0 {
		free = min(free, limit-db.Size())
	}
	return free
}

// appendJournal makes the requests durable in the journal, and then visible.
func (db *DB) appendJournal(batch []*request) error {
	encoded, writes := encodeRecord(batch)
	p := &db.writer
	if !p.journal.room(len(encoded)) {
		if err := db.awaitCheckpoint(); err != nil {
			return err
		}
	}
	if p.checkpoint == nil && (p.bytes > checkpointBytes || !p.journal.room(len(encoded))) {
		db.beginCheckpoint()
	}
	if err := p.journal.append(encoded); err != nil {
		return db.explain(err)
	}
	if p.bytes == 0 {
		p.checkpointTimer.Reset(checkpointAfter)
	}
	p.bytes += int64(len(encoded))
	db.overlay.Lock()
	db.overlay.active.put(writes)
	db.overlay.Unlock()
	db.metrics.fsyncs.Inc()
	db.metrics.batch.Observe(float64(len(batch)))
	return nil
}

// beginCheckpoint starts to move the journal's contents into the tables. Commits continue in the other file. No
// checkpoint may be in progress.
func (db *DB) beginCheckpoint() {
	flushing := db.rotate()
	number := db.writer.number
	done := make(chan error, 1)
	db.writer.checkpoint = done
	go func() { // awaited by awaitCheckpoint
		done <- db.write(flushing, number)
		select {
		case db.checkpointDone <- struct{}{}:
		default: // a signal is pending already
		}
	}()
}

// checkpointIfDue begins a checkpoint, or repeats one that found no space.
func (db *DB) checkpointIfDue() error {
	switch {
	case db.writer.stuck:
		return db.fatalError(db.flush())
	case db.writer.checkpoint == nil && db.writer.bytes > 0:
		db.beginCheckpoint()
	}
	return nil
}

// rotate makes the active layer the flushing one, and switches to the other file.
func (db *DB) rotate() layer {
	p := &db.writer
	p.flushingBytes, p.bytes, p.number = p.bytes, 0, p.journal.last
	p.journal.switchFile()
	p.checkpointTimer.Stop()
	db.overlay.Lock()
	defer db.overlay.Unlock()
	db.overlay.flushing, db.overlay.active = db.overlay.active, make(layer)
	return db.overlay.flushing
}

// awaitCheckpoint waits for the checkpoint in progress, if there is one.
func (db *DB) awaitCheckpoint() error {
	if db.writer.checkpoint == nil {
		return nil
	}
	return db.checkpointEnded(<-db.writer.checkpoint)
}

// pollCheckpoint handles the end of the checkpoint in progress, if it has ended.
func (db *DB) pollCheckpoint() error {
	select {
	case err := <-db.writer.checkpoint:
		return db.checkpointEnded(err)
	default:
		return nil // the writer has already waited for it
	}
}

// checkpointEnded handles the result of the checkpoint in progress. flush repeats one that found no space.
func (db *DB) checkpointEnded(err error) error {
	db.writer.checkpoint = nil
	switch {
	case err == nil:
		db.dropFlushed()
		if db.writer.bytes > 0 { // commits made meanwhile would wait for checkpointBytes
			db.writer.checkpointTimer.Reset(checkpointAfter)
		}
	case errors.Is(err, ErrFull):
		db.writer.stuck = true
		db.writer.checkpointTimer.Reset(checkpointAfter)
	}
	return err
}

// dropFlushed drops the flushing layer, which the tables now contain.
func (db *DB) dropFlushed() {
	db.writer.flushingBytes, db.writer.stuck = 0, false
	db.logFull(false, nil)
	db.overlay.Lock()
	defer db.overlay.Unlock()
	db.overlay.flushing = nil
}

// flush returns when the tables contain every commit.
func (db *DB) flush() error {
	if err := db.awaitCheckpoint(); err != nil && !errors.Is(err, ErrFull) {
		return err
	}
	if db.writer.stuck {
		if err := db.checkpointEnded(db.write(db.overlay.flushing, db.writer.number)); err != nil {
			return err
		}
	}
	if db.writer.bytes == 0 {
		return nil
	}
	flushing := db.rotate()
	return db.checkpointEnded(db.write(flushing, db.writer.number))
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

// awaitFlush makes Run flush, so that the tables alone contain every earlier commit. If Run has ended, awaitFlush itself
// flushes what a full disk may have left in the journal, or returns why writing has ended.
func (db *DB) awaitFlush() error {
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
	db.writer.Lock()
	defer db.writer.Unlock()
	if db.writer.failure != nil {
		return db.writer.failure
	}
	return db.flush()
}
