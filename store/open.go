package store

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a store. The zero value of each field but Path means its default.
type Options struct {
	// Path of the file. It is created if it is missing; its directory must exist.
	Path string
	// LockTimeout is how long to wait for another process to release the file. Default 2 s.
	LockTimeout time.Duration
	// MaxSize bounds the file in bytes; commits that would need more fail with ErrFull. Default: no bound.
	MaxSize int64
	// Logger receives damage, fallbacks and failed commits. Default: discarded.
	Logger *slog.Logger
	// Registerer receives the metrics of metrics.go until Close. Default: none are kept.
	Registerer prometheus.Registerer
}

// Open opens the store at o.Path, or creates it. It fails with ErrInUse, kv.ErrDamaged or ErrFormat.
func Open(o Options) (*DB, error) {
	if o.LockTimeout == 0 {
		o.LockTimeout = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &tables{path: o.Path, log: o.Logger}
	if err := (opening{t, o.LockTimeout, o.MaxSize}).open(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	db := &DB{
		tables: t,
		wake:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	db.overlay.active = make(layer)
	var err error
	if db.metrics, err = newMetrics(o.Registerer, db.Size); err != nil {
		err = fmt.Errorf("register metrics: %w", err)
	} else {
		w := &db.writer
		w.tables, w.overlay, w.metrics, w.log, w.maxSize = t, &db.overlay, db.metrics, o.Logger, o.MaxSize
		w.checkpointDone = make(chan struct{}, 1)
		w.checkpointTimer = time.NewTimer(time.Hour)
		w.checkpointTimer.Stop()
		if err = w.recover(); err == nil {
			w.recovered = true
			w.journal.openBoth()
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), db.Close())
	}
	return db, nil
}

// Close ends Run if it runs (queued commits still complete), fails the remaining waiters with ErrClosed, and closes the
// file. It waits for open Scans. Further calls do nothing.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.mu.closed {
		db.mu.Unlock()
		return nil
	}
	db.mu.closed = true
	running := db.mu.running
	db.mu.Unlock()

	close(db.stop)
	if running {
		<-db.done
	} else {
		answer(db.dequeue(ErrClosed), ErrClosed)
	}
	db.metrics.unregister()
	db.writer.Lock() // a caller of Check may still write
	defer db.writer.Unlock()
	if err := errors.Join(db.writer.close(), db.tables.close()); err != nil {
		return fmt.Errorf("close store %s: %w", db.tables.path, err)
	}
	return nil
}
