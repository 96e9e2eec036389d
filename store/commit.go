package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/kv"
)

// Bounds of one write, in bytes, and of one record or transaction. A transaction takes whole commits until it reaches one
// of its bounds; a single commit may exceed them.
const (
	MaxTable = 64
	MaxKey   = bbolt.MaxKeySize // 32,768
	MaxValue = 32 << 20

	maxBatchBytes  = 4 << 20
	maxBatchWrites = 4096
)

// request is a caller that waits for its writes.
type request struct {
	writes []kv.Write
	bytes  int
	answer chan error // buffered: the sender never waits

	// If writes is empty, the request deletes the rows of table whose keys begin with prefix.
	table  string
	prefix []byte
}

// Commit writes all of writes, in their order, or none of them. It returns when they are on disk, or with ErrFull,
// kv.ErrDamaged, ErrClosed or the disk's error. It waits until Run runs. The caller must not modify the writes until it
// returns. An invalid write (no or too long table, key or value) is rejected before anything is written, and does not
// affect other commits.
func (db *DB) Commit(writes []kv.Write) error {
	if len(writes) == 0 {
		return nil
	}
	r := &request{writes: writes, answer: make(chan error, 1)}
	for i, w := range writes {
		if err := check(w); err != nil {
			db.metrics.failed.WithLabelValues("invalid").Inc()
			return fmt.Errorf("commit write %d of %d: %w", i+1, len(writes), err)
		}
		r.bytes += len(w.Key) + len(w.Value)
	}
	if err := db.submit(r); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// DeletePrefix deletes every entry of the table whose key begins with prefix (all of them if it is
// empty) as one commit, ordered like the others.
func (db *DB) DeletePrefix(table string, prefix []byte) error {
	if err := checkTable(table); err != nil {
		return fmt.Errorf("delete prefix: %w", err)
	}
	if err := db.submit(&request{table: table, prefix: prefix, answer: make(chan error, 1)}); err != nil {
		return fmt.Errorf("delete prefix: %w", err)
	}
	return nil
}

func check(w kv.Write) error {
	if err := checkTable(w.Table); err != nil {
		return err
	}
	switch {
	case len(w.Key) == 0:
		return fmt.Errorf("empty key for table %s", w.Table)
	case len(w.Key) > MaxKey:
		return fmt.Errorf("key of %d bytes for table %s: at most %d are allowed", len(w.Key), w.Table, MaxKey)
	case len(w.Value) > MaxValue:
		return fmt.Errorf("value of %d bytes for table %s: at most %d are allowed", len(w.Value), w.Table, MaxValue)
	}
	return nil
}

func checkTable(name string) error {
	switch {
	case name == "":
		return errors.New("empty table name")
	case len(name) > MaxTable:
		return fmt.Errorf("table name of %d bytes: at most %d are allowed", len(name), MaxTable)
	case name == metaTable:
		return fmt.Errorf("table %s belongs to the store", metaTable)
	}
	return nil
}

// submit queues r and waits for the answer.
func (db *DB) submit(r *request) error {
	began := time.Now()
	db.mu.Lock()
	if err := db.mu.rejection; err != nil {
		db.mu.Unlock()
		db.metrics.fail(err)
		return err
	}
	db.mu.queue = append(db.mu.queue, r)
	db.mu.Unlock()
	if !db.tryWrite() {
		select {
		case db.wake <- struct{}{}:
		default: // a signal is pending already
		}
	}
	if err := <-r.answer; err != nil {
		db.metrics.fail(err)
		return err
	}
	db.metrics.commits.Inc()
	db.metrics.writes.Add(float64(len(r.writes)))
	db.metrics.seconds.Observe(time.Since(began).Seconds())
	return nil
}

// Run performs the queued commits until ctx ends or Close is called; then it performs those already queued and returns
// nil. It returns an error when writing to the file is no longer safe (damage, a failing disk). Reads may still work
// then, but the daemon should stop. A full disk is no such error. Run may be called once.
func (db *DB) Run(ctx context.Context) error {
	db.mu.Lock()
	if db.mu.running || db.mu.closed {
		db.mu.Unlock()
		return errors.New("run store: it was run before, or is closed")
	}
	db.mu.running = true
	db.mu.Unlock()
	defer close(db.done)
	db.writer.Lock()
	db.writer.writing = true
	db.writer.Unlock()

	for {
		var what func() error
		select {
		case <-db.wake:
			what = func() error { return db.commitAll(db.dequeue()) }
		case <-db.checkpointDone:
			what = func() error { return db.fatalError(db.pollCheckpoint()) }
		case <-db.writer.checkpointTimer.C:
			what = db.checkpointIfDue
		case reply := <-db.flushes:
			what = func() error {
				err := db.flush()
				reply <- err
				return db.fatalError(err)
			}
		case <-ctx.Done():
			return db.finishRun()
		case <-db.stop:
			return db.finishRun()
		}
		if err := db.withWriter(what); err != nil {
			return err
		}
	}
}

// withWriter calls what with the writer state locked. It ends writing if that fails, or if a caller of Commit has failed.
func (db *DB) withWriter(what func() error) error {
	db.writer.Lock()
	defer db.writer.Unlock()
	err := db.writer.failure
	if err == nil {
		err = what()
	}
	if err != nil {
		return db.endWriting(err)
	}
	return nil
}

// tryWrite performs the queued commits if no goroutine is writing, which saves the caller the way to Run and back. It
// returns false if Run has work to do.
func (db *DB) tryWrite() bool {
	if !db.writer.TryLock() {
		return false
	}
	defer db.writer.Unlock()
	if !db.writer.writing {
		return false
	}
	if err := db.commitAll(db.dequeue()); err != nil {
		db.writer.writing, db.writer.failure = false, err
		answer(db.rejectAll(err), err)
		return false // Run ends
	}
	return true
}

// finishRun performs the remaining queued commits, and moves everything into the tables if they have room for it.
func (db *DB) finishRun() error {
	return db.withWriter(func() error {
		db.writer.writing = false
		if err := db.commitAll(db.rejectAll(ErrClosed)); err != nil {
			return err
		}
		return db.fatalError(db.flush())
	})
}

// fatalError returns the checkpoint errors after which nothing may be written any more. A full disk is not one of them: the
// journal has everything.
func (db *DB) fatalError(err error) error {
	if errors.Is(err, ErrFull) {
		db.logFull(true, err)
		return nil
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; nothing more is written until a restart", err)
}

// dequeue empties the queue.
func (db *DB) dequeue() []*request {
	db.mu.Lock()
	defer db.mu.Unlock()
	queue := db.mu.queue
	db.mu.queue = nil
	return queue
}

// rejectAll makes every later commit fail with err, and returns the queued ones.
func (db *DB) rejectAll(err error) []*request {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.mu.rejection = err
	queue := db.mu.queue
	db.mu.queue = nil
	return queue
}

// endWriting ends writing after a failure that leaves the file in doubt.
func (db *DB) endWriting(err error) error {
	db.writer.writing, db.writer.failure = false, err
	answer(db.rejectAll(err), err)
	if db.writer.checkpoint != nil {
		<-db.writer.checkpoint // it fails as well, or its data is also in the journal
		db.writer.checkpoint = nil
	}
	return fmt.Errorf("run store: %w", err)
}

func answer(requests []*request, err error) {
	for _, r := range requests {
		r.answer <- err
	}
}

// commitAll performs the requests in order, in as few transactions as the bounds allow, and answers each. If a failure
// leaves the file in doubt, all remaining requests get it as their answer, and commitAll returns it.
func (db *DB) commitAll(queue []*request) error {
	alone := 0 // number of requests at the head of the queue that get a transaction each
	for len(queue) > 0 {
		n := 1
		if alone > 0 {
			alone--
		} else {
			n = batchLen(queue)
		}
		err := db.makeDurable(queue[:n], alone)
		full := errors.Is(err, ErrFull)
		if full && n > 1 {
			// One of them is too large. The others may fit, or free the missing space.
			alone = n
			continue
		}
		db.logFull(full, err)
		if err != nil && !full {
			err = fmt.Errorf("%w; nothing more is written until a restart", err)
		}
		answer(queue[:n], err)
		queue = queue[n:]
		if err != nil && !full {
			answer(queue, err)
			return err
		}
	}
	return nil
}

// makeDurable makes the requests durable: in the journal if they fit, else in the tables. Requests with a transaction of
// their own bypass the journal, because they were too large for the tables together with others.
func (db *DB) makeDurable(batch []*request, alone int) error {
	if alone == 0 && db.fitsJournal(batch) {
		if err := db.appendJournal(batch); !errors.Is(err, ErrFull) {
			return err
		}
	}
	if err := db.flush(); err != nil {
		return err
	}
	return db.transact(batch)
}

// batchLen returns how many requests from the head of the queue share the next transaction: at least one.
func batchLen(queue []*request) int {
	bytes, writes := 0, 0
	for i, r := range queue {
		bytes += r.bytes
		writes += len(r.writes)
		if i > 0 && (bytes > maxBatchBytes || writes > maxBatchWrites) {
			return i
		}
	}
	return len(queue)
}

// logFull logs when the disk becomes full and when it has space again, but not each commit in between.
func (db *DB) logFull(full bool, err error) {
	if full == db.writer.full {
		return
	}
	db.writer.full = full
	if full {
		db.log.Error("the store is full: commits that add data are refused until there is space",
			"path", db.path, "error", err)
	} else {
		db.log.Info("the store has space again", "path", db.path)
	}
}

// transact applies the requests in one transaction. bbolt syncs the pages, then the meta page that
// makes them valid: two fdatasyncs.
func (db *DB) transact(batch []*request) error {
	err := db.update(func(tx *bbolt.Tx) error {
		for _, r := range batch {
			if err := r.apply(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		db.metrics.batch.Observe(float64(len(batch)))
	}
	return err
}

// update runs one transaction of bbolt.
func (db *DB) update(change func(tx *bbolt.Tx) error) error {
	err := guard(func() error { return db.bolt.Update(change) })
	if errors.Is(err, kv.ErrDamaged) {
		db.mu.Lock()
		db.mu.panicked = true
		db.mu.Unlock()
	}
	if err != nil {
		return db.explain(err)
	}
	db.metrics.fsyncs.Add(2)
	return nil
}

func (r *request) apply(tx *bbolt.Tx) error {
	if len(r.writes) == 0 {
		return deletePrefix(tx, r.table, r.prefix)
	}
	for _, w := range r.writes {
		if err := put(tx, w); err != nil {
			return fmt.Errorf("write to table %s: %w", w.Table, err)
		}
	}
	return nil
}

func put(tx *bbolt.Tx, w kv.Write) error {
	bucket := tx.Bucket([]byte(w.Table)) // the transaction caches it
	if w.Value == nil {
		if bucket == nil {
			return nil
		}
		return bucket.Delete(w.Key)
	}
	if bucket == nil {
		var err error
		if bucket, err = tx.CreateBucket([]byte(w.Table)); err != nil {
			return err
		}
	}
	return bucket.Put(w.Key, seal(w.Table, w.Key, w.Value))
}

func deletePrefix(tx *bbolt.Tx, table string, prefix []byte) error {
	bucket := tx.Bucket([]byte(table))
	if bucket == nil {
		return nil
	}
	if len(prefix) == 0 {
		return tx.DeleteBucket([]byte(table))
	}
	// Deleting under a moving cursor skips entries: collect first.
	var keys [][]byte
	cursor := bucket.Cursor()
	for key, _ := cursor.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix); key, _ = cursor.Next() {
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		if err := bucket.Delete(key); err != nil {
			return fmt.Errorf("delete from table %s: %w", table, err)
		}
	}
	return nil
}
