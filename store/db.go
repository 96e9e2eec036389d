package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// DB is an open store. Commits wait until Run runs.
type DB struct {
	tables  *tables
	overlay overlay // committed, and not in the tables yet
	writer  writer
	metrics *metrics

	wake chan struct{} // 1 pending signal: the queue has work, or writing has failed
	stop chan struct{} // closed by Close: ends Run
	done chan struct{} // closed when Run has ended

	// mu is locked after writer.
	mu struct {
		sync.Mutex
		queue     []*request
		running   bool  // Run was called
		rejection error // why commits are refused; nil while they are accepted
		closed    bool
	}
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
		db.wakeRun()
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

func (db *DB) wakeRun() {
	select {
	case db.wake <- struct{}{}:
	default: // a signal is pending already
	}
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
	w := &db.writer
	w.Lock()
	w.writing = true
	w.Unlock()

	for {
		var what func() error
		select {
		case <-db.wake:
			what = func() error { return w.commit(db.dequeue(nil)) }
		case <-w.checkpointDone:
			what = func() error { return w.fatal(w.pollCheckpoint()) }
		case <-w.checkpointTimer.C:
			what = w.checkpointIfDue
		case <-ctx.Done():
			return db.withWriter(db.finish)
		case <-db.stop:
			return db.withWriter(db.finish)
		}
		if err := db.withWriter(what); err != nil {
			return err
		}
	}
}

// finish performs the remaining queued commits, and moves everything into the tables if they have room for it.
func (db *DB) finish() error {
	db.writer.writing = false
	if err := db.writer.commit(db.dequeue(ErrClosed)); err != nil {
		return err
	}
	return db.writer.fatal(db.writer.flush())
}

// withWriter calls what with the writer locked. It ends writing if that fails, or if another goroutine's write has
// failed.
func (db *DB) withWriter(what func() error) error {
	db.writer.Lock()
	defer db.writer.Unlock()
	err := db.writer.failure
	if err == nil {
		err = what()
	}
	if err == nil {
		return nil
	}
	db.endWriting(err)
	if db.writer.checkpoint != nil {
		<-db.writer.checkpoint // it fails as well, or its data is also in the journal
		db.writer.checkpoint = nil
	}
	return fmt.Errorf("run store: %w", err)
}

// endWriting ends writing after a failure that leaves the file in doubt. The caller has locked the writer.
func (db *DB) endWriting(err error) {
	db.writer.writing, db.writer.failure = false, err
	answer(db.dequeue(err), err)
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
	if err := db.writer.commit(db.dequeue(nil)); err != nil {
		db.endWriting(err)
		return false // Run ends
	}
	return true
}

// dequeue empties the queue. If rejection is not nil, every later commit fails with it.
func (db *DB) dequeue(rejection error) []*request {
	db.mu.Lock()
	defer db.mu.Unlock()
	if rejection != nil {
		db.mu.rejection = rejection
	}
	queue := db.mu.queue
	db.mu.queue = nil
	return queue
}

// flush moves every earlier commit into the tables, and returns what then returns; no later commit reaches them before.
func (db *DB) flush(what func() error) error {
	db.writer.Lock()
	defer db.writer.Unlock()
	if err := db.writer.failure; err != nil {
		return err
	}
	if err := db.writer.flush(); err != nil {
		if fatal := db.writer.fatal(err); fatal != nil {
			db.endWriting(fatal)
			db.wakeRun() // it ends
		}
		return err
	}
	return what()
}
