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
	// checkpointBytes of records bring what they hold into the tables, and so does checkpointAfter: a restart has
	// little to read back, and a row that is written again and again goes into the tables once.
	checkpointBytes = 8 << 20
	checkpointAfter = 5 * time.Second
	// spareBytes must be free on the disk beside four times what waits for the tables, for commits to go to the journal:
	// what was acknowledged must find its place. On a fuller disk they go into the tables at once, and fail there.
	spareBytes = 32 << 20
)

// journalKey is the row of the meta table that says up to which record the tables have the journal: u64, big-endian.
var journalKey = []byte("journal")

// pen is what is needed to write. It belongs to whoever has locked it: Run, or a caller of Commit who finds nobody
// writing; and to Open before.
type pen struct {
	sync.Mutex
	writing bool  // Run runs, and nothing has ended the writing
	failure error // why the writing has ended, if not by the end of Run
	full    bool  // the last transaction found no space
	journal journal
	bytes   int64       // of records in the present file
	older   int64       // of records in the other one, while they go into the tables
	number  uint64      // of the last record in the tables, or on its way into them
	under   chan error  // delivers how the checkpoint under way ended; nil if there is none
	stuck   bool        // the last one failed for want of space: the layer is aging still
	due     *time.Timer // runs while there is something in the journal
}

// recoverJournal brings what a crash left in the journal into the tables.
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
		db.log.Error("the store is full: what is in the journal waits for space", "path", db.path, "error", err)
		db.pen.stuck = true
		return nil
	}
	if err != nil {
		return db.explain(err)
	}
	db.checkpointed()
	return nil
}

// journals tells whether the requests go to the journal: they fit, and there is so much space left that the tables
// will have room for them.
func (db *DB) journals(batch []*request) bool {
	n := int64(journalHead)
	for _, r := range batch {
		if len(r.writes) == 0 {
			return false // it deletes what it finds in the tables
		}
		n += int64(r.bytes)
		for _, w := range r.writes {
			n += int64(len(w.Table)) + 9
		}
	}
	return !db.pen.stuck && n <= journalMax && db.spare() >= spareBytes+4*(db.pen.bytes+db.pen.older+n)
}

// spare is how many bytes the tables can still grow by.
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

// beginCheckpoint has what is in the journal go into the tables, beside the commits, which go on in the other file.
// None is under way.
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

// age makes the fresh layer the aging one, and goes on in the other file.
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

// await waits for the checkpoint under way, if there is one.
func (db *DB) await() error {
	if db.pen.under == nil {
		return nil
	}
	return db.landed(<-db.pen.under)
}

// arrived takes in the checkpoint under way, if it has ended.
func (db *DB) arrived() error {
	select {
	case err := <-db.pen.under:
		return db.landed(err)
	default:
		return nil // whoever wrote has waited for it
	}
}

// landed takes in how the checkpoint under way ended. One that found no space is repeated by flush.
func (db *DB) landed(err error) error {
	db.pen.under = nil
	switch {
	case err == nil:
		db.checkpointed()
		if db.pen.bytes > 0 { // what came meanwhile would wait for checkpointBytes
			db.pen.due.Reset(checkpointAfter)
		}
	case errors.Is(err, ErrFull):
		db.pen.stuck = true
		db.pen.due.Reset(checkpointAfter)
	}
	return err
}

// checkpointed: the tables have the aging layer.
func (db *DB) checkpointed() {
	db.pen.older, db.pen.stuck = 0, false
	db.noteFull(false, nil)
	db.overlay.Lock()
	defer db.overlay.Unlock()
	db.overlay.aging = nil
}

// flush returns when the tables have everything that was committed.
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

// write puts a layer into the tables, with the number of the last record that is in it. Any goroutine may call it, one
// at a time.
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

// settled has Run flush, so that the tables alone tell everything that was committed before. If Run has ended it flushes
// itself what a full disk may have left in the journal then; or gives why the writing ended.
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
